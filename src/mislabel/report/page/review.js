"use strict";
(() => {
  const content = JSON.parse(document.getElementById("content").textContent);
  const PAGE = 50;
  const $ = (id) => document.getElementById(id);

  /* ---- data ---------------------------------------------------------------------------------------------------- */

  const unpack = (text, Kind) => {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Kind(bytes.buffer);
  };
  const packed = content.rows;
  const rows = {
    position: unpack(packed.position, Int32Array),
    label: unpack(packed.label, Float64Array),
    expected: unpack(packed.expected, Float32Array),
    half: unpack(packed.half, Float32Array),
    suggested: unpack(packed.suggested, Float64Array),
    z: unpack(packed.z, Float32Array),
    q: unpack(packed.q, Float32Array),
    suspect: unpack(packed.suspect, Uint8Array),
  };
  const size = rows.position.length;
  const idOf = (rank) => (content.ids ? content.ids[rank] : String(rows.position[rank]));
  const patternOf = new Map();
  content.patterns.forEach((pattern, k) => pattern.ranks.forEach((rank) => patternOf.set(rank, k)));
  const nearOf = new Map(content.details.nearOf.map((rank, k) => [rank, content.details.near[k]]));
  const featuresOf = (rank) => {
    const at = content.details.rank[rank];
    return at === undefined ? null : content.details.features[at];
  };

  const show = (value, digits = 5) => {
    if (!Number.isFinite(value)) return "missing";
    if (value === 0) return "0";
    const magnitude = Math.floor(Math.log10(Math.abs(value)));
    if (magnitude >= -4 && magnitude < 7) return String(Number(value.toPrecision(digits)));
    return Number(value.toPrecision(digits)).toExponential();
  };
  const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

  /* ---- decisions: kept by the browser, undone step by step -------------------------------------------------------- */

  const key = `mislabel:${content.file.sha256}:${content.label}`;
  const decisions = new Map(); // rank -> {action, value, note}
  const undoStack = [];
  let storageWorks = true;

  const load = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(key) || "[]");
      for (const [rank, decision] of kept) if (rank >= 0 && rank < size) decisions.set(rank, decision);
    } catch (error) {
      storageWorks = false;
    }
  };
  const save = () => {
    try {
      localStorage.setItem(key, JSON.stringify([...decisions]));
    } catch (error) {
      storageWorks = false;
    }
    $("storage").hidden = storageWorks;
    if (!storageWorks) $("storage").textContent = "This browser does not keep decisions for local pages: export them before you close it.";
  };
  const same = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);

  const decide = (changes, message) => {
    const before = changes.map(([rank]) => [rank, decisions.get(rank) ?? null]);
    if (changes.every(([rank, decision], k) => same(decision, before[k][1]))) return;
    undoStack.push(before);
    apply(changes);
    announce(message);
  };
  const apply = (changes) => {
    for (const [rank, decision] of changes) {
      if (decision === null) decisions.delete(rank);
      else decisions.set(rank, decision);
    }
    save();
    refresh();
  };
  const undo = () => {
    const before = undoStack.pop();
    if (!before) return announce("Nothing to undo.");
    apply(before);
    if (before.length === 1) select(before[0][0]);
    announce(before.length === 1 ? `Undone: row ${idOf(before[0][0])}.` : `Undone: ${before.length} rows.`);
  };
  const withNote = (rank, decision) => ({ ...decision, note: decisions.get(rank)?.note ?? "" });
  const accept = (rank) => {
    if (!Number.isFinite(rows.suggested[rank])) return announce("There is no suggestion for this row.");
    decide([[rank, withNote(rank, { action: "accept", value: suggestionOf(rank) })]], `Row ${idOf(rank)}: suggestion accepted.`);
  };
  const suggestionOf = (rank) => (rows.suspect[rank] || !Number.isFinite(rows.label[rank]) ? rows.suggested[rank] : Number(rows.expected[rank].toPrecision(6)));
  const keep = (rank) => decide([[rank, withNote(rank, { action: "keep", value: null })]], `Row ${idOf(rank)}: label kept.`);
  const drop = (rank) => decide([[rank, withNote(rank, { action: "drop", value: null })]], `Row ${idOf(rank)}: will be dropped.`);
  const clear = (rank) => decide([[rank, null]], `Row ${idOf(rank)}: undecided.`);
  const parseNumber = (text) => {
    const trimmed = text.trim().replace(/\u2212/g, "-");
    const plain = content.file.dialect?.decimal === "," ? trimmed.replace(/\./g, "").replace(",", ".") : trimmed;
    return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(plain) ? Number(plain) : NaN;
  };
  const edit = (rank, text) => {
    const value = parseNumber(text);
    if (!Number.isFinite(value)) return announce(`"${text}" is not a number; nothing was changed.`);
    decide([[rank, withNote(rank, { action: "edit", value })]], `Row ${idOf(rank)}: label set to ${show(value, 8)}.`);
  };
  const note = (rank, text) => {
    const now = decisions.get(rank) ?? { action: "keep", value: null, note: "" };
    decide([[rank, { ...now, note: text }]], `Row ${idOf(rank)}: note kept.`);
  };

  const verdictOf = (rank) => {
    const decision = decisions.get(rank);
    if (!decision) return "";
    const told = { accept: () => `accepted: ${show(decision.value)}`, edit: () => `edited: ${show(decision.value)}`, keep: () => "keep", drop: () => "drop" };
    return told[decision.action]() + (decision.note ? " (note)" : "");
  };

  /* ---- which rows, in which order ---------------------------------------------------------------------------------- */

  const COLUMNS = [
    { name: "Row", value: (rank) => idOf(rank), text: (rank) => idOf(rank), header: true },
    { name: "Label", value: (rank) => rows.label[rank], text: (rank) => show(rows.label[rank]), number: true },
    { name: "Expected", value: (rank) => rows.expected[rank], text: (rank) => `${show(rows.expected[rank])} ± ${show(rows.half[rank], 2)}`, number: true },
    { name: "Suggested", value: (rank) => suggestionOf(rank), text: (rank) => (rows.suspect[rank] || !Number.isFinite(rows.label[rank]) ? show(rows.suggested[rank]) : ""), number: true },
    { name: "z", value: (rank) => Math.abs(rows.z[rank]), text: (rank) => (Number.isFinite(rows.z[rank]) ? rows.z[rank].toFixed(1) : ""), number: true },
    { name: "q", value: (rank) => rows.q[rank], text: (rank) => (rows.q[rank] < 1e-4 ? "< 0.0001" : rows.q[rank].toPrecision(2)), number: true },
    { name: "Suspicion", value: (rank) => rank, text: (rank) => (rows.suspect[rank] ? "suspect" : Number.isFinite(rows.label[rank]) ? "" : "missing") + (patternOf.has(rank) ? ", pattern" : "") },
    { name: "Decision", value: (rank) => verdictOf(rank), text: (rank) => verdictOf(rank), verdict: true },
  ];
  let sortBy = 6, ascending = true, pageNumber = 0, current = -1, opened = false;
  let shown = new Int32Array(0);

  const inView = (rank, view) => {
    if (view === "suspects") return rows.suspect[rank] || !Number.isFinite(rows.label[rank]);
    if (view === "undecided") return (rows.suspect[rank] || !Number.isFinite(rows.label[rank])) && !decisions.has(rank);
    if (view === "decided") return decisions.has(rank);
    if (view.startsWith("pattern")) return patternOf.get(rank) === Number(view.slice(7));
    return true;
  };
  const matches = (rank, words) => {
    if (!words.length) return true;
    const features = featuresOf(rank);
    const text = `${idOf(rank)}\n${features ? features.join("\n") : ""}\n${decisions.get(rank)?.note ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const compute = () => {
    const view = $("view").value;
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (let rank = 0; rank < size; rank++) if (inView(rank, view) && matches(rank, words)) found.push(rank);
    if (sortBy !== 6) {
      const value = COLUMNS[sortBy].value;
      const keys = new Map(found.map((rank) => [rank, value(rank)]));
      const collator = new Intl.Collator("en", { numeric: true });
      found.sort((one, other) => {
        const a = keys.get(one), b = keys.get(other);
        if (typeof a === "string") return collator.compare(a, b) || one - other;
        const order = (Number.isNaN(a) ? Infinity : a) - (Number.isNaN(b) ? Infinity : b);
        return order || one - other;
      });
    }
    if (!ascending) found.reverse();
    shown = found;
  };

  /* ---- the table ----------------------------------------------------------------------------------------------------- */

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") element.className = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };
  const announce = (message) => { $("live").textContent = message; };

  const drawHead = () => {
    $("head").replaceChildren(...COLUMNS.map((column, k) => make("th", {
      scope: "col", class: column.number ? "number" : "",
      "aria-sort": k === sortBy ? (ascending ? "ascending" : "descending") : "none",
    }, make("button", { type: "button", onclick: () => {
      // Numbers are most interesting from the top.
      if (sortBy === k) ascending = !ascending;
      else { sortBy = k; ascending = !(column.name === "z"); }
      pageNumber = 0;
      drawHead();
      draw();
      announce(`Sorted by ${column.name}, ${ascending ? "ascending" : "descending"}.`);
    } }, column.name + (k === sortBy ? (ascending ? " ▲" : " ▼") : "")))));
  };

  const drawRow = (rank) => {
    const cells = COLUMNS.map((column) => {
      const cell = make(column.header ? "th" : "td", {
        scope: column.header ? "row" : undefined, class: column.number ? "number" : "", "data-name": column.name, dir: column.header ? "auto" : undefined,
      });
      const text = column.text(rank);
      if (column.verdict) cell.append(make("span", { class: "verdict" }, text));
      else if (column.name === "Suspicion" && rows.suspect[rank]) cell.append(make("span", { class: "suspect-mark" }, text));
      else cell.append(text);
      return cell;
    });
    const line = make("tr", {
      class: `row${rank === current ? " current" : ""}`, "data-rank": rank, tabindex: rank === current ? "0" : "-1",
      "aria-current": rank === current ? "true" : undefined, "aria-expanded": rank === current && opened ? "true" : "false",
      onclick: () => { if (current === rank) { opened = !opened; draw(); } else select(rank, true); },
    }, ...cells);
    return line;
  };

  const drawDetail = (rank) => {
    const features = featuresOf(rank);
    const decision = decisions.get(rank);
    const left = make("div", {}, make("h3", {}, "Evidence"));
    const evidence = make("dl", {});
    const fact = (name, value) => evidence.append(make("dt", {}, name), make("dd", { dir: "auto" }, value));
    fact("label", show(rows.label[rank], 8));
    fact("expected", `${show(rows.expected[rank])}, clean labels between ${show(rows.expected[rank] - rows.half[rank])} and ${show(rows.expected[rank] + rows.half[rank])}`);
    if (Number.isFinite(rows.z[rank])) fact("off by", `${show(rows.label[rank] - rows.expected[rank])}, ${Math.abs(rows.z[rank]).toFixed(1)} standard deviations`);
    fact("suggested", show(suggestionOf(rank), 6));
    if (patternOf.has(rank)) fact("pattern", content.patterns[patternOf.get(rank)].words);
    fact("position", `${rows.position[rank]} (counted from 0)`);
    left.append(evidence);
    if (features) {
      left.append(make("h3", {}, "This row"));
      const list = make("dl", {});
      content.details.columns.forEach((name, k) => list.append(make("dt", { dir: "auto" }, name), make("dd", { dir: "auto" }, features[k] || "—")));
      left.append(list);
    }
    const right = make("div", {}, make("h3", {}, "Most similar trusted rows"));
    const near = nearOf.get(rank);
    if (near && near.length) {
      const columns = content.details.columns.slice(0, 8);
      const table = make("table", {}, make("thead", {}, make("tr", {}, ...["row", "label", "similarity", ...columns].map((name) => make("th", { scope: "col", dir: "auto" }, name)))));
      const body = make("tbody", {});
      for (const [other, at, similarity] of near) {
        const values = content.details.features[at];
        body.append(make("tr", {}, make("th", { scope: "row", dir: "auto" }, idOf(other)), make("td", { class: "number" }, show(rows.label[other])),
          make("td", { class: "number" }, similarity.toFixed(3)), ...columns.map((_, k) => make("td", { dir: "auto" }, values[k]))));
      }
      table.append(body);
      right.append(make("div", { class: "inner", tabindex: "0", role: "region", "aria-label": "Most similar trusted rows" }, table));
    } else right.append(make("p", { class: "muted" }, "Neighbours are kept for the most suspicious rows only."));
    const value = make("input", { id: "edit", inputmode: "decimal", value: decision && decision.value !== null && decision.value !== undefined ? String(decision.value) : "", placeholder: show(suggestionOf(rank)), autocomplete: "off" });
    value.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { edit(rank, value.value); focusRow(); }
      if (event.key === "Escape") focusRow();
      event.stopPropagation();
    });
    const text = make("input", { id: "note", value: decision?.note ?? "", autocomplete: "off", dir: "auto" });
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { note(rank, text.value); focusRow(); }
      if (event.key === "Escape") focusRow();
      event.stopPropagation();
    });
    const act = (name, letter, action, kind = "") => make("button", { type: "button", class: kind, "data-action": name.toLowerCase().split(" ")[0], onclick: (event) => { event.stopPropagation(); action(); } }, `${name} `, make("kbd", {}, letter));
    const actions = make("div", { class: "actions" },
      act("Accept suggestion", "A", () => accept(rank), "primary"), act("Keep label", "K", () => keep(rank)), act("Drop row", "D", () => drop(rank)),
      make("label", {}, "New value ", value), act("Edit", "E", () => edit(rank, value.value)),
      make("label", {}, "Note ", text), act("Note", "N", () => note(rank, text.value)),
      ...(decision ? [make("button", { type: "button", "data-action": "clear", onclick: () => clear(rank) }, "Undecide")] : []));
    return make("tr", { class: "detail" }, make("td", { colspan: String(COLUMNS.length) }, make("div", { class: "detail-grid" }, left, right), actions));
  };

  const draw = () => {
    compute();
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    pageNumber = Math.min(Math.max(pageNumber, 0), pages - 1);
    const page = shown.slice(pageNumber * PAGE, (pageNumber + 1) * PAGE);
    const lines = [];
    for (const rank of page) {
      lines.push(drawRow(rank));
      if (rank === current && opened) lines.push(drawDetail(rank));
    }
    if (!page.length) lines.push(make("tr", {}, make("td", { colspan: String(COLUMNS.length) }, "No rows match.")));
    $("body").replaceChildren(...lines);
    $("page").textContent = `${plural(shown.length, "row")}, page ${pageNumber + 1} of ${pages}`;
    $("previous").disabled = pageNumber === 0;
    $("next").disabled = pageNumber >= pages - 1;
    const first = $("body").querySelector("tr.row");
    if (first && !$("body").querySelector("tr.current")) first.tabIndex = 0;
  };
  const refresh = () => {
    draw();
    drawProgress();
    requestAnimationFrame(drawScatter);
  };
  const focusRow = () => $("body").querySelector("tr.current")?.focus({ preventScroll: false });
  const select = (rank, open = opened) => {
    current = rank;
    opened = open;
    compute();
    let at = shown.indexOf(rank);
    if (at < 0) {
      $("view").value = "all";
      $("search").value = "";
      compute();
      at = shown.indexOf(rank);
    }
    pageNumber = Math.floor(at / PAGE);
    draw();
    focusRow();
  };
  const step = (by) => {
    if (!shown.length) return;
    const at = shown.indexOf(current);
    const to = at < 0 ? (by > 0 ? pageNumber * PAGE : shown.length - 1) : Math.min(Math.max(at + by, 0), shown.length - 1);
    select(shown[to]);
  };
  const drawProgress = () => {
    let done = 0, total = 0;
    const tally = { accept: 0, edit: 0, keep: 0, drop: 0 };
    for (let rank = 0; rank < size; rank++) if (rows.suspect[rank] || !Number.isFinite(rows.label[rank])) { total++; if (decisions.has(rank)) done++; }
    for (const decision of decisions.values()) tally[decision.action]++;
    $("progress").textContent = `${done} of ${plural(total, "suspect or missing label")} decided; ${tally.accept} accepted, ${tally.edit} edited, ${tally.keep} kept, ${tally.drop} to drop.`;
    $("bar").max = Math.max(total, 1);
    $("bar").value = done;
    $("undo").disabled = !undoStack.length;
  };

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) { event.preventDefault(); undo(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing) { if (event.key === "Escape") typing.blur(); return; }
    const active = current >= 0 && shown.includes(current) ? current : -1;
    const letter = event.key.toLowerCase();
    const onRow = { a: accept, k: keep, d: drop };
    if (event.key === "ArrowDown") step(1);
    else if (event.key === "ArrowUp") step(-1);
    else if (event.key === "/") $("search").focus();
    else if (letter === "u") undo();
    else if (active >= 0 && event.key === "Enter" && event.target.closest("tr.row")) { opened = !opened; draw(); focusRow(); }
    else if (active >= 0 && onRow[letter]) { onRow[letter](active); focusRow(); }
    else if (active >= 0 && (letter === "e" || letter === "n")) { opened = true; draw(); $(letter === "e" ? "edit" : "note").focus(); $(letter === "e" ? "edit" : "note").select(); }
    else return;
    event.preventDefault();
  });

  /* ---- export ---------------------------------------------------------------------------------------------------------- */

  const download = (name, text, kind) => {
    const address = URL.createObjectURL(new Blob([text], { type: kind }));
    const link = make("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };
  const decisionList = () => [...decisions].map(([rank, decision]) => ({
    position: rows.position[rank], row: idOf(rank), label: Number.isFinite(rows.label[rank]) ? rows.label[rank] : null,
    action: decision.action, value: decision.value ?? null, note: decision.note || "",
  })).sort((one, other) => one.position - other.position);
  const decisionsText = () => JSON.stringify({
    format: "mislabel-decisions/1", file: { name: content.file.name, sha256: content.file.sha256, rows: content.file.rows, sheet: content.file.sheet },
    label: content.label, decisions: decisionList(),
  }, null, 1);
  const base = content.file.name.replace(/\.[^.]*$/, "");

  const quoted = (cell, delimiter) => (/["\r\n]/.test(cell) || cell.includes(delimiter) ? `"${cell.replace(/"/g, '""')}"` : cell);
  const written = (value, decimal) => {
    const text = String(value).replace(/e\+?(-?)(\d)$/, "e$10$2").replace(/e(\d)/, "e+$1");
    return text.replace(".", decimal);
  };
  const whole = Boolean(content.cells) || size === content.file.rows;
  const cleanedText = () => {
    const byPosition = new Map(decisionList().map((decision) => [decision.position, decision]));
    const dialect = content.file.dialect ?? { delimiter: ",", decimal: ".", lineEnd: "\n", mark: false };
    const lines = [];
    const line = (cells) => {
      // A single empty cell must not look like an empty line.
      const text = cells.length === 1 && cells[0] === "" ? '""' : cells.map((cell) => quoted(cell, dialect.delimiter)).join(dialect.delimiter);
      lines.push(text);
    };
    if (content.cells) {
      line(content.cells.header);
      content.cells.rows.forEach((cells, position) => {
        const decision = byPosition.get(position);
        if (decision?.action === "drop") return;
        line(decision && decision.value !== null ? cells.map((cell, k) => (k === content.cells.label ? written(decision.value, dialect.decimal) : cell)) : cells);
      });
    } else {
      const safe = (cell) => (/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell);
      const byRow = new Int32Array(size);
      for (let rank = 0; rank < size; rank++) byRow[rows.position[rank]] = rank;
      line([content.id ?? "row", content.label, "decision"].map(safe));
      for (let position = 0; position < size; position++) {
        const rank = byRow[position], decision = byPosition.get(position);
        if (decision?.action === "drop") continue;
        const value = decision && decision.value !== null ? decision.value : rows.label[rank];
        line([safe(idOf(rank)), Number.isFinite(value) ? written(value, dialect.decimal) : "", decision ? decision.action : ""]);
      }
    }
    return (dialect.mark ? "\ufeff" : "") + lines.join(dialect.lineEnd) + dialect.lineEnd;
  };

  /* ---- pictures ---------------------------------------------------------------------------------------------------------- */

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let place = null;
  const extent = (values, low, high) => {
    // The central bulk sets the scale; a slip of three decimals must not flatten everything else.
    const some = [];
    const stride = Math.max(1, Math.floor(values.length / 20000));
    for (let i = 0; i < values.length; i += stride) if (Number.isFinite(values[i])) some.push(values[i]);
    some.sort((a, b) => a - b);
    const at = (share) => some[Math.min(some.length - 1, Math.floor(share * some.length))];
    const middle = at(high) - at(low);
    return [Math.max(some[0], at(low) - 0.75 * middle), Math.min(some[some.length - 1], at(high) + 0.75 * middle)];
  };
  const limits = (() => {
    const a = extent(rows.expected, 0, 1), b = extent(rows.label, 0.02, 0.98);
    const low = Math.min(a[0], b[0]), high = Math.max(a[1], b[1]);
    const pad = 0.04 * (high - low || 1);
    return [low - pad, high + pad];
  })();
  const ticks = (low, high, count = 5) => {
    const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
    const unit = [1, 2, 5, 10].map((k) => k * power).find((value) => value >= raw);
    const found = [];
    for (let value = Math.ceil(low / unit) * unit; value <= high; value += unit) found.push(Math.abs(value) < unit * 1e-9 ? 0 : value);
    return found;
  };
  const drawScatter = () => {
    const canvas = $("scatter");
    const box = canvas.getBoundingClientRect();
    if (!box.width) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, box.width, box.height);
    const [low, high] = limits;
    const left = 52, right = 8, top = 8, bottom = 40;
    const x = (value) => left + ((value - low) / (high - low)) * (box.width - left - right);
    const y = (value) => box.height - bottom - ((value - low) / (high - low)) * (box.height - top - bottom);
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = color("--muted");
    pen.strokeStyle = color("--line");
    for (const tick of ticks(low, high)) {
      pen.beginPath(); pen.moveTo(left, y(tick)); pen.lineTo(box.width - right, y(tick)); pen.stroke();
      pen.textAlign = "right"; pen.fillText(show(tick, 4), left - 5, y(tick) + 4);
      pen.textAlign = "center"; pen.fillText(show(tick, 4), x(tick), box.height - bottom + 16);
    }
    pen.textAlign = "center";
    pen.fillText("expected", (left + box.width - right) / 2, box.height - 6);
    pen.save(); pen.translate(12, (box.height - bottom) / 2); pen.rotate(-Math.PI / 2); pen.fillText("label", 0, 0); pen.restore();
    pen.setLineDash([4, 4]);
    pen.beginPath(); pen.moveTo(x(low), y(low)); pen.lineTo(x(high), y(high)); pen.stroke();
    pen.setLineDash([]);
    let outside = 0;
    const dot = (rank, radius, fill) => {
      const value = rows.label[rank];
      if (!Number.isFinite(value)) return;
      const clipped = Math.min(Math.max(value, low), high);
      if (clipped !== value) outside++;
      pen.fillStyle = fill;
      pen.beginPath(); pen.arc(x(Math.min(Math.max(rows.expected[rank], low), high)), y(clipped), radius, 0, 7); pen.fill();
    };
    pen.globalAlpha = size > 5000 ? 0.25 : 0.6;
    const small = size > 20000 ? 1.2 : 2.2;
    for (let rank = size - 1; rank >= 0; rank--) if (!rows.suspect[rank]) dot(rank, small, color.trusted);
    pen.globalAlpha = 0.9;
    for (let rank = size - 1; rank >= 0; rank--) if (rows.suspect[rank] || decisions.has(rank)) dot(rank, 4, decisions.has(rank) ? color.decided : color.suspect);
    if (current >= 0 && Number.isFinite(rows.label[current])) {
      pen.globalAlpha = 1; pen.strokeStyle = color("--accent"); pen.lineWidth = 2;
      pen.beginPath(); pen.arc(x(rows.expected[current]), y(Math.min(Math.max(rows.label[current], low), high)), 8, 0, 7); pen.stroke();
    }
    pen.globalAlpha = 1;
    $("clipped").textContent = outside ? `${plural(outside, "label")} beyond the picture, drawn at its edge` : "";
    place = { x, y, low, high };
  };
  $("scatter").addEventListener("click", (event) => {
    const box = $("scatter").getBoundingClientRect();
    let best = -1, nearest = 15;
    for (let rank = 0; rank < size; rank++) {
      if (!Number.isFinite(rows.label[rank]) || (!rows.suspect[rank] && size > 20000)) continue;
      const distance = Math.hypot(place.x(rows.expected[rank]) - (event.clientX - box.left), place.y(Math.min(Math.max(rows.label[rank], place.low), place.high)) - (event.clientY - box.top)) - (rows.suspect[rank] ? 5 : 0);
      if (distance < nearest) { nearest = distance; best = rank; }
    }
    if (best >= 0) { select(best, true); $("body").querySelector("tr.current")?.scrollIntoView({ block: "center" }); }
  });
  const updateColors = () => { color.trusted = color("--trusted"); color.suspect = color("--suspect"); color.decided = color("--decided"); };

  const NS = "http://www.w3.org/2000/svg";
  const svg = (tag, attributes, ...children) => {
    const element = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const drawHistogram = () => {
    const { edges, trusted, suspect, cut } = content.histogram;
    const width = 420, height = 240, left = 40, bottom = 34, top = 10;
    const most = Math.max(...trusted.map((count, k) => count + suspect[k]), 1);
    const x = (value) => left + ((value - edges[0]) / (edges[edges.length - 1] - edges[0])) * (width - left - 22);
    // The square root keeps single suspects visible beside thousands of trusted labels.
    const y = (count) => height - bottom - Math.sqrt(count / most) * (height - bottom - top);
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Histogram of z: ${plural(suspect.reduce((a, b) => a + b, 0), "suspect")}${cut === null ? "" : `, all with |z| of at least ${cut.toFixed(1)}`}.` });
    trusted.forEach((count, k) => {
      const box = { x: x(edges[k]) + 0.5, width: x(edges[k + 1]) - x(edges[k]) - 1 };
      const both = count + suspect[k];
      if (suspect[k]) drawing.append(svg("rect", { ...box, y: y(both), height: height - bottom - y(both), fill: "var(--suspect)" }));
      if (count) drawing.append(svg("rect", { ...box, y: y(count), height: height - bottom - y(count), fill: "var(--trusted)" }));
    });
    for (const tick of [-6, -4, -2, 0, 2, 4, 6]) drawing.append(svg("text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle" }, Math.abs(tick) === 6 ? `${tick < 0 ? "≤ " : "≥ "}${tick}` : String(tick)));
    for (const share of [0.25, 1]) drawing.append(svg("text", { x: left - 4, y: y(most * share) + 4, "text-anchor": "end" }, String(Math.round(most * share))));
    if (cut !== null && cut < 6) for (const sign of [-1, 1]) drawing.append(svg("line", { x1: x(sign * cut), x2: x(sign * cut), y1: top, y2: height - bottom, stroke: "var(--ink)", "stroke-dasharray": "4 3" }));
    $("histogram").replaceChildren(drawing);
    if (cut !== null) $("histogram-caption").textContent = `How far labels are off, in standard deviations (z). Suspects have |z| of at least ${cut.toFixed(1)}. Heights are on a square-root scale.`;
  };
  const drawCalibration = () => {
    const width = 420, height = 260, left = 44, bottom = 38;
    const x = (value) => left + value * (width - left - 24), y = (value) => height - bottom - value * (height - bottom - 10);
    const line = content.calibration.map(([share, seen]) => `${x(share).toFixed(1)},${y(seen).toFixed(1)}`).join(" ");
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Observed against nominal coverage" },
      svg("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), stroke: "var(--line)", "stroke-dasharray": "4 4" }),
      svg("polyline", { points: line, fill: "none", stroke: "var(--accent)", "stroke-width": "2.5" }));
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
      drawing.append(svg("text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle" }, `${100 * tick} %`));
      drawing.append(svg("text", { x: left - 5, y: y(tick) + 4, "text-anchor": "end" }, `${100 * tick} %`));
    }
    drawing.append(svg("text", { x: x(0.5), y: height - 4, "text-anchor": "middle" }, "should hold"));
    $("calibration").replaceChildren(drawing);
    const seen = new Map(content.calibration);
    $("calibration-words").textContent = `Intervals for half of the clean labels hold ${Math.round(100 * seen.get(0.5))} % of all labels, those for 95 % hold ${Math.round(100 * seen.get(0.95))} %; wrong labels lie outside.`;
  };
  const drawFeatures = () => {
    $("features").replaceChildren(...content.byFeature.map((entry) => {
      const most = Math.max(...entry.bins.map((bin) => bin.suspects / bin.count), 1e-9);
      const bars = make("div", { class: "bars", role: "list" });
      for (const bin of entry.bins) {
        const share = bin.suspects / bin.count;
        const fill = make("div", { class: "fill" });
        fill.style.width = `${(100 * share) / most}%`;
        bars.append(make("span", { class: "name", dir: "auto", role: "listitem" }, bin.name), make("span", { class: "track" }, fill),
          make("span", {}, `${bin.suspects} of ${bin.count.toLocaleString("en")}, |z| ${bin.z.toFixed(2)}`));
      }
      const told = entry.p < 1e-4 ? "a clear difference" : entry.p < 0.01 ? "probably a difference" : "no clear difference";
      return make("figure", {}, make("figcaption", { dir: "auto" }, make("strong", {}, entry.column), ` — ${told}`), bars);
    }));
  };

  /* ---- words, patterns, columns ------------------------------------------------------------------------------------------- */

  const drawWords = () => {
    document.title = `${content.label}: label audit`;
    $("version").textContent = content.version;
    $("title").textContent = `Are the values of “${content.label}” right?`;
    $("source").textContent = `${content.file.name}, ${plural(content.file.rows, "row")}`;
    $("words").replaceChildren(...[...content.words, content.patternLine].map((line) => make("p", { dir: "auto" }, line)));
    $("trust").replaceChildren(...content.trust.map((line) => make("p", { dir: "auto" }, line)));
    $("command").textContent = `mislabel apply ${content.file.name} decisions.json -o cleaned${(/\.[^.]+$/.exec(content.file.name) || [".csv"])[0]}`;
    $("patterns-section").hidden = !content.patterns.length;
    $("patterns").replaceChildren(...content.patterns.map((pattern, k) => make("li", {},
      make("span", { dir: "auto" }, make("strong", {}, `${pattern.ranks.length} suspects fit ${pattern.words}`), ` (${pattern.certainty}; ${pattern.byAccident < 0.1 ? "almost none" : pattern.byAccident.toFixed(1)} expected by accident)`),
      make("span", {},
        make("button", { type: "button", onclick: () => { $("view").value = `pattern${k}`; pageNumber = 0; draw(); $("review").scrollIntoView(); } }, "Show"), " ",
        make("button", { type: "button", class: "primary", onclick: () => decide(pattern.ranks.map((rank) => [rank, withNote(rank, { action: "accept", value: rows.suggested[rank] })]), `${pattern.ranks.length} rows: correction accepted.`) }, `Accept all ${pattern.ranks.length}`)))));
    const list = make("dl", {});
    const used = make("p", { dir: "auto" }, `Used as features: ${content.used.slice(0, 60).join(", ")}${content.used.length > 60 ? ", …" : ""}.`);
    $("columns").replaceChildren(used);
    for (const item of content.leftOut) $("columns").append(make("p", { dir: "auto" }, `Left out: ${item.column} (${item.reason}).`));
    if (size < content.file.rows) $("columns").append(make("p", {}, `This page holds the ${plural(size, "row")} that look most suspicious, out of ${plural(content.file.rows, "row")}; all of them are in audit.csv. The cleaned file is made by the command below.`));
    for (const item of content.notes) $("columns").append(make("p", { dir: "auto", class: "muted" }, `Note: ${item}`));
  };
  const drawViews = () => {
    const missing = rows.label.some((value) => !Number.isFinite(value));
    const options = [["suspects", missing ? "suspects and missing labels" : "suspects"], ["undecided", "undecided suspects"], ["decided", "decided rows"], ["all", "all rows"],
      ...content.patterns.map((pattern, k) => [`pattern${k}`, `pattern: ${pattern.words}`])];
    $("view").replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
    if (!content.suspects && !missing) $("view").value = "all";
  };

  /* ---- start ---------------------------------------------------------------------------------------------------------------- */

  load();
  updateColors();
  drawWords();
  drawViews();
  drawHead();
  draw();
  drawProgress();
  drawHistogram();
  drawCalibration();
  drawFeatures();
  drawScatter();
  $("scatter").setAttribute("aria-label", `Scatter plot of ${plural(size, "label")} against what is expected of them, ${plural(content.suspects, "suspect")} marked. The review table holds the same rows.`);
  $("view").addEventListener("change", () => { pageNumber = 0; draw(); announce(`${plural(shown.length, "row")} shown.`); });
  let waiting = 0;
  $("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => { pageNumber = 0; draw(); announce(`${plural(shown.length, "row")} match.`); }, 120); });
  $("previous").addEventListener("click", () => { pageNumber--; draw(); });
  $("next").addEventListener("click", () => { pageNumber++; draw(); });
  $("undo").addEventListener("click", undo);
  $("export-decisions").addEventListener("click", () => download("decisions.json", decisionsText(), "application/json"));
  $("export-clean").hidden = !whole;
  $("export-clean").addEventListener("click", () => download(`${base}-cleaned.csv`, cleanedText(), "text/csv"));
  $("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    updateColors();
    drawScatter();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { updateColors(); drawScatter(); });
  new ResizeObserver(() => drawScatter()).observe($("scatter"));
  document.documentElement.dataset.ready = "yes";
})();
