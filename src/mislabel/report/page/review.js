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
    expected: unpack(packed.expected, Float64Array),
    half: unpack(packed.half, Float64Array),
    suggested: unpack(packed.suggested, Float64Array),
    z: unpack(packed.z, Float32Array),
    q: unpack(packed.q, Float32Array),
    suspect: unpack(packed.suspect, Uint8Array),
    side: packed.side ? unpack(packed.side, Int8Array) : null,
  };
  /* The label, with its sign where it is only a limit. */
  const labelText = (rank) => (rows.side?.[rank] ? `${rows.side[rank] < 0 ? "<" : ">"} ` : "") + full(rows.label[rank]);
  const size = rows.position.length;
  const rankOf = new Map();
  rows.position.forEach((position, rank) => rankOf.set(position, rank));
  const idOf = (rank) => (content.ids ? content.ids[rank] : String(rows.position[rank]));
  const LONGEST_ID = 200;
  const shownId = (rank) => (idOf(rank).length > LONGEST_ID ? `${idOf(rank).slice(0, LONGEST_ID - 1)}…` : idOf(rank));
  const rowAt = (position) => (rankOf.has(position) ? `row ${shownId(rankOf.get(position))}` : `the row at position ${position}`);
  const patternOf = new Map();
  content.patterns.forEach((pattern, k) => pattern.ranks.forEach((rank) => patternOf.set(rank, k)));
  const nearOf = new Map(content.details.nearOf.map((rank, k) => [rank, content.details.near[k]]));
  const featuresOf = (rank) => {
    const at = content.details.rank[rank];
    return at === undefined ? null : content.details.features[at];
  };

  const { tidy, write, full, show, fixed, read } = numberNotation(content.numbers);
  const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

  /* ---- decisions: kept by the browser, undone step by step -------------------------------------------------------- */

  const orNull = (value) => (Number.isFinite(value) ? value : null);
  // Sheets of a workbook have rows of their own.
  const key = `mislabel:${content.file.sha256}:${content.label}${content.file.sheet === null ? "" : `\nsheet ${content.file.sheet}`}`;
  const store = decisionStore({
    key, audit: content.audit, size: content.file.rows,
    labelAt: (position) => (rankOf.has(position) ? orNull(rows.label[rankOf.get(position)]) : undefined),
  });
  const { decisions } = store; // position -> decision
  const decisionOf = (rank) => decisions.get(rows.position[rank]);
  const undoStack = [];

  const isOpen = (rank) => rows.suspect[rank] || !Number.isFinite(rows.label[rank]);
  const suggestionOf = (rank) => (isOpen(rank) ? tidy(rows.suggested[rank]) : Number(rows.expected[rank].toPrecision(Math.max(6, digitsOf(rank)))));
  const made = (rank, action, value, note = decisionOf(rank)?.note ?? "", together = false) => [rows.position[rank], {
    action, value, note, label: orNull(rows.label[rank]), suggested: orNull(suggestionOf(rank)), audit: content.audit,
    ...(content.ids && idOf(rank).length <= LONGEST_ID ? { row: idOf(rank) } : {}),
    ...(together ? { together } : {}),
  }];

  const decide = (changes, message) => {
    const elsewhere = new Set(store.sync());
    if (changes.every(([position, decision]) => store.same(decision, decisions.get(position)))) {
      refresh();
      tellElsewhere(elsewhere, new Set());
      return announce("Decided so already.");
    }
    const steps = changes.map(([position, decision]) => ({ position, before: decisions.get(position) ?? null, after: decision }));
    undoStack.push(steps);
    store.change(changes);
    const before = panel?.boundLine();
    refresh();
    tellElsewhere(elsewhere, new Set(changes.map(([position]) => position)));
    return announce(panel && panel.boundLine() !== before ? `${message} ${panel.boundLine()}`.trim() : message);
  };
  const undo = () => {
    const steps = undoStack.pop();
    if (!steps) return announce("Nothing to undo since this page was opened.");
    tellElsewhere(new Set(store.sync()), new Set());
    const ours = steps.filter(({ position, after }) => store.same(decisions.get(position), after));
    store.change(ours.map(({ position, before }) => [position, before]));
    refresh();
    if (ours.length === 1 && rankOf.has(ours[0].position)) select(rankOf.get(ours[0].position));
    const others = steps.length - ours.length;
    return announce(`Undone: ${ours.length === 1 ? rowAt(ours[0].position) : plural(ours.length, "row")}.${others ? ` ${plural(others, "row")} changed in another tab since, and left as they are.` : ""}`);
  };
  const accept = (rank) => {
    if (!Number.isFinite(suggestionOf(rank))) return announce("There is no suggestion for this row.");
    return decide([made(rank, "accept", suggestionOf(rank))], `Row ${shownId(rank)}: ${write(suggestionOf(rank))} accepted.`);
  };
  const keep = (rank) => decide([made(rank, "keep", null)], `Row ${shownId(rank)}: label kept.`);
  const drop = (rank) => decide([made(rank, "drop", null)], `Row ${shownId(rank)}: will be dropped.`);
  const clear = (rank) => decide([[rows.position[rank], null]], `Row ${shownId(rank)}: undecided.`);
  const prefilled = (rank) => (Number.isFinite(decisionOf(rank)?.value) ? write(decisionOf(rank).value) : "");
  /* Whether the text was a number; if not, why stands beside the box. */
  const edit = (rank, text) => {
    if (text && text === prefilled(rank)) {
      announce(`Row ${shownId(rank)}: nothing was changed.`);
      return true;
    }
    const { value, problem } = read(text);
    if (problem) {
      $("edit-problem").textContent = problem;
      $("edit").setAttribute("aria-invalid", "true");
      announce(problem);
      return false;
    }
    decide([made(rank, "edit", value)], `Row ${shownId(rank)}: label set to ${write(value)}.`);
    return true;
  };
  const LONGEST_NOTE = 10000;
  /* One line of text that any program can show: no control or direction characters, no halves of characters. */
  const printable = (text) => text.replace(/[\p{Zl}\p{Zp}\t\r\n\v\f]+/gu, " ").replace(/[\p{Cc}\p{Cs}\u202a-\u202e\u2066-\u2069]/gu, "").trim();
  const note = (rank, text) => {
    const clean = printable(text), now = decisionOf(rank);
    const kept = printable(clean.slice(0, LONGEST_NOTE));
    const cut = kept.length < clean.length ? ` It was cut to ${plural(LONGEST_NOTE, "character")}.` : "";
    decide([made(rank, now?.action ?? "keep", now?.value ?? null, kept, now ? now.together : true)], `Row ${shownId(rank)}: note kept${now ? "" : ", and the label with it"}.${cut}`);
  };

  const takenOver = (decision) => Boolean(decision) && decision.audit !== content.audit;
  /* Whether a decision of an earlier audit was made about another suggestion than the one of this page. */
  const suggestedOtherwise = (rank) => {
    const decision = decisionOf(rank), now = suggestionOf(rank);
    if (!takenOver(decision)) return false;
    return (decision.suggested === null) !== !Number.isFinite(now) || (decision.suggested !== null && full(decision.suggested) !== full(now));
  };
  const verdictOf = (rank) => {
    const decision = decisionOf(rank);
    if (!decision) return "";
    const told = { accept: () => `accepted: ${write(decision.value)}`, edit: () => `edited: ${write(decision.value)}`, keep: () => "keep", drop: () => "drop" };
    return told[decision.action]() + (takenOver(decision) ? " (earlier audit)" : "") + (decision.note ? " (note)" : "");
  };

  /* ---- notices: what happened to decisions without anybody's doing ----------------------------------------------------- */

  const notice = (id, text, ...buttons) => {
    document.getElementById(id)?.remove();
    if (text) $("notices").append(make("p", { class: "notice", id }, text, ...buttons.map(([name, action]) => make("button", { type: "button", onclick: action }, name))));
  };
  const drawStorage = () => notice("storage", store.works() ? "" : "This browser does not keep the decisions of this page: export them before you close it.");
  const tellElsewhere = (elsewhere, replaced) => {
    const both = [...elsewhere].filter((position) => replaced.has(position)).length;
    const parts = [];
    if (elsewhere.size > both) parts.push(`${plural(elsewhere.size - both, "decision")} made in another tab ${elsewhere.size - both === 1 ? "was" : "were"} taken over.`);
    if (both) parts.push(`${plural(both, "decision")} made in another tab ${both === 1 ? "was" : "were"} replaced by what was decided here later; undo brings ${both === 1 ? "it" : "them"} back.`);
    if (parts.length) notice("elsewhere", parts.join(" "), ["Close", () => notice("elsewhere", "")]);
  };
  const drawTakenOver = () => {
    const taken = [...decisions].filter(([, decision]) => takenOver(decision));
    const others = taken.filter(([position]) => rankOf.has(position) && suggestedOtherwise(rankOf.get(position))).length;
    const outside = taken.filter(([position]) => !rankOf.has(position)).length;
    if (!taken.length) return notice("taken-over", "");
    const changed = others ? `; in ${others.toLocaleString("en")} of them the suggestion is another one now: look at them again` : "; their suggestions are the same";
    const hidden = outside ? ` ${plural(outside, "decision")} of them ${outside === 1 ? "is about a row" : "are about rows"} that this page does not hold; ${outside === 1 ? "it is" : "they are"} exported with the others.` : "";
    return notice("taken-over", `${plural(taken.length, "decision")} from an earlier audit of this file ${taken.length === 1 ? "was" : "were"} taken over${changed}. Accepted values are those that were accepted then.${hidden}`,
      ...(others ? [["Show those rows", () => { $("view").value = "again"; pageNumber = 0; draw(); $("review").scrollIntoView(); announce(`${plural(shown.length, "row")} shown.`); }]] : []),
      ["Keep them all", () => decide(taken.map(([position, decision]) => [position, { ...decision, audit: content.audit }]), `${plural(taken.length, "decision")} kept.`)],
      ["Discard them all", () => decide(taken.map(([position]) => [position, null]), `${plural(taken.length, "decision")} discarded; undo brings them back.`)]);
  };
  const drawLoaded = ({ older, misfits, unreadable }) => {
    const where = "They are still in this browser's storage, under a name of their own.";
    if (older) notice("older", `${plural(older, "decision")} kept by an older version could not be matched with rows and ${older === 1 ? "was" : "were"} set aside. ${where}`);
    if (misfits) notice("misfits", `${plural(misfits, "decision")} kept by this browser ${misfits === 1 ? "does" : "do"} not fit the labels of this page and ${misfits === 1 ? "was" : "were"} set aside. ${where}`);
    if (unreadable) notice("older", `What this browser kept for this page could not be read and was set aside. ${where}`);
  };

  /* ---- which rows, in which order ---------------------------------------------------------------------------------- */

  /* As many digits as the interval tells apart, and as the page holds. */
  const digitsOf = (rank) => {
    const apart = Math.ceil(Math.log10(Math.abs(rows.expected[rank]) / rows.half[rank])) + 2;
    return Number.isFinite(apart) ? Math.min(Math.max(apart, 5), 7) : 5;
  };
  /* With the decimals of the interval beside it: 4.470,00 ± 0,25 rather than 4.470 ± 0,25. */
  const expectedText = (rank) => {
    const half = show(rows.half[rank], 2), digits = digitsOf(rank);
    const held = digits - Math.max(1, Math.floor(Math.log10(Math.abs(rows.expected[rank]))) + 1);
    const decimals = half.split(content.numbers.decimal)[1]?.length ?? 0;
    return `${show(rows.expected[rank], digits, Math.max(0, Math.min(decimals, held)))} ± ${half}`;
  };
  const COLUMNS = [
    { name: "Row", value: (rank) => idOf(rank), text: (rank) => shownId(rank), header: true },
    { name: "Label", value: (rank) => rows.label[rank], text: (rank) => labelText(rank), number: true },
    { name: "Expected", value: (rank) => rows.expected[rank], text: (rank) => expectedText(rank), number: true },
    { name: "Suggested", value: (rank) => suggestionOf(rank), text: (rank) => (isOpen(rank) ? full(suggestionOf(rank)) : ""), number: true },
    { name: "z", value: (rank) => Math.abs(rows.z[rank]), text: (rank) => (Number.isFinite(rows.z[rank]) ? fixed(rows.z[rank], 1) : ""), number: true },
    { name: "q", value: (rank) => rows.q[rank], text: (rank) => (rows.q[rank] < 1e-4 ? `< ${show(0.0001)}` : show(rows.q[rank], 2)), number: true },
    { name: "Suspicion", value: (rank) => rank, text: (rank) => (rows.suspect[rank] ? "suspect" : Number.isFinite(rows.label[rank]) ? "" : "missing") + (patternOf.has(rank) ? ", pattern" : "") },
    { name: "Decision", value: (rank) => verdictOf(rank), text: (rank) => verdictOf(rank), verdict: true },
  ];
  let sortBy = 6, ascending = true, pageNumber = 0, current = -1, opened = false;
  let shown = new Int32Array(0);

  const inView = (rank, view) => {
    if (view === "suspects") return isOpen(rank);
    if (view === "undecided") return isOpen(rank) && !decisionOf(rank);
    if (view === "decided") return Boolean(decisionOf(rank));
    if (view === "again") return suggestedOtherwise(rank);
    if (view.startsWith("pattern")) return patternOf.get(rank) === Number(view.slice(7));
    return true;
  };
  const matches = (rank, words) => {
    if (!words.length) return true;
    const features = featuresOf(rank);
    const text = `${idOf(rank)}\n${features ? features.join("\n") : ""}\n${decisionOf(rank)?.note ?? ""}`.toLowerCase();
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
    const decision = decisionOf(rank);
    const left = make("div", {}, make("h3", {}, "Evidence"));
    const evidence = make("dl", {});
    const fact = (name, value) => evidence.append(make("dt", {}, name), make("dd", { dir: "auto" }, value));
    fact("label", labelText(rank));
    fact("expected", `${show(rows.expected[rank], digitsOf(rank))}, clean labels between ${show(rows.expected[rank] - rows.half[rank], digitsOf(rank))} and ${show(rows.expected[rank] + rows.half[rank], digitsOf(rank))}`);
    if (Number.isFinite(rows.z[rank])) fact("off by", `${show(rows.label[rank] - rows.expected[rank])}, ${fixed(Math.abs(rows.z[rank]), 1)} standard deviations`);
    fact("suggested", full(suggestionOf(rank)));
    if (suggestedOtherwise(rank)) fact("decided on", `a suggestion of ${decision.suggested === null ? "nothing" : full(decision.suggested)} in an earlier audit`);
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
        body.append(make("tr", {}, make("th", { scope: "row", dir: "auto" }, shownId(other)), make("td", { class: "number" }, labelText(other)),
          make("td", { class: "number" }, fixed(similarity, 3)), ...columns.map((_, k) => make("td", { dir: "auto" }, values[k]))));
      }
      table.append(body);
      right.append(make("div", { class: "inner", tabindex: "0", role: "region", "aria-label": "Most similar trusted rows" }, table));
    } else right.append(make("p", { class: "muted" }, "Neighbours are kept for the most suspicious rows only."));
    const value = make("input", { id: "edit", inputmode: "decimal", value: prefilled(rank), placeholder: full(suggestionOf(rank)), autocomplete: "off", "aria-describedby": "edit-problem" });
    value.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && edit(rank, value.value)) focusRow();
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
    return make("tr", { class: "detail" }, make("td", { colspan: String(COLUMNS.length) }, make("div", { class: "detail-grid" }, left, right), actions, make("p", { id: "edit-problem", class: "problem" }), ...(panel ? panel.rowLine(rank) : [])));
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
    panel?.drawShown(shown, `${$("view").value}\n${$("search").value}`);
    const first = $("body").querySelector("tr.row");
    if (first && !$("body").querySelector("tr.current")) first.tabIndex = 0;
  };
  const refresh = () => {
    drawTakenOver();
    drawStorage();
    drawViews();
    panel?.draw();
    draw();
    drawProgress();
    requestAnimationFrame(drawScatter);
  };
  /* Redraw without losing what somebody is typing into the table. */
  const whileTyping = (redraw) => {
    const typed = ["edit", "note"].map((id) => [id, $(id)?.value]), focused = document.activeElement?.id;
    const before = current;
    redraw();
    for (const [id, text] of typed) if (text !== undefined && $(id) && current === before) $(id).value = text;
    if (focused === "edit" || focused === "note") $(focused)?.focus();
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
  const lookAt = (rank, where) => { select(rank, true); $("body").querySelector("tr.current")?.scrollIntoView({ block: where }); };
  const step = (by) => {
    if (!shown.length) return;
    const at = shown.indexOf(current);
    const to = at < 0 ? (by > 0 ? pageNumber * PAGE : shown.length - 1) : Math.min(Math.max(at + by, 0), shown.length - 1);
    select(shown[to]);
  };
  const drawProgress = () => {
    let done = 0, total = 0;
    const tally = { accept: 0, edit: 0, keep: 0, drop: 0 };
    for (let rank = 0; rank < size; rank++) if (isOpen(rank)) { total++; if (decisionOf(rank)) done++; }
    for (const decision of decisions.values()) tally[decision.action]++;
    $("progress").textContent = `${done} of ${plural(total, "suspect or missing label")} decided; ${tally.accept} accepted, ${tally.edit} edited, ${tally.keep} kept, ${tally.drop} to drop.`;
    $("bar").max = Math.max(total, 1);
    $("bar").value = done;
    $("undo").disabled = !undoStack.length;
  };

  document.addEventListener("keydown", (event) => {
    if ($("confirm").open) return;
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
    else if (letter === "s" && panel) panel.goOn();
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
  const exported = auditExports({ content, rows, rankOf, idOf, decisions, write });

  /* ---- pictures ---------------------------------------------------------------------------------------------------------- */

  const { drawScatter, drawHistogram, drawCalibration, drawDetectable, drawFeatures, updateColors } = auditPictures({
    content, rows, decisionOf, show, fixed, plural, make, current: () => current,
    pick: (rank) => lookAt(rank, "center"),
  });

  /* ---- certified by review ----------------------------------------------------------------------------------------------- */

  const panel = certificatePanel({ content, size, unpack, decisionOf, plural, make, open: (rank) => { lookAt(rank, "start"); announce(`Row ${shownId(rank)}, next of the random sample.`); } });

  /* ---- words, patterns, columns ------------------------------------------------------------------------------------------- */

  /* What accepting all of a pattern will write, before it is written. */
  const confirmPattern = (pattern) => {
    const ranks = pattern.ranks.filter((rank) => Number.isFinite(suggestionOf(rank)));
    const decided = ranks.filter((rank) => decisionOf(rank)).length;
    const chosen = () => ranks.filter((rank) => $("confirm-replace").checked || !decisionOf(rank));
    const update = () => {
      const count = chosen().length;
      $("confirm-write").textContent = count === 1 ? "Write this value" : `Write these ${plural(count, "value")}`;
      $("confirm-write").disabled = !count;
      for (const line of $("confirm-rows").rows) line.classList.toggle("left-alone", line.dataset.decided === "yes" && !$("confirm-replace").checked);
    };
    $("confirm-title").textContent = `Accept ${plural(ranks.length, "correction")}?`;
    $("confirm-words").textContent = `${pattern.words}. Nothing is written before you say so; undo takes it back.`;
    $("confirm-rows").replaceChildren(...ranks.map((rank) => make("tr", { "data-decided": decisionOf(rank) ? "yes" : "no" },
      make("th", { scope: "row", dir: "auto" }, shownId(rank)), make("td", { class: "number" }, labelText(rank)),
      make("td", { class: "number" }, expectedText(rank)), make("td", { class: "number new" }, full(suggestionOf(rank))), make("td", {}, verdictOf(rank)))));
    $("confirm-decided").hidden = !decided;
    $("confirm-decided-words").textContent = `Replace ${plural(decided, "decision")} made before (else ${decided === 1 ? "it is" : "they are"} left alone)`;
    $("confirm-replace").checked = false;
    $("confirm-replace").onchange = update;
    $("confirm-write").onclick = () => {
      const now = chosen();
      $("confirm").close();
      decide(now.map((rank) => made(rank, "accept", suggestionOf(rank), undefined, true)), `${plural(now.length, "row")}: correction accepted.`);
    };
    update();
    $("confirm").showModal();
    $("confirm-title").focus();
  };

  /* A file name as a shell takes it for one word. */
  const word = (name) => {
    const local = name.startsWith("-") ? `./${name}` : name;
    return /^[\w.,+@%:=/-]+$/.test(local) ? local : `'${local.replace(/'/g, "'\\''")}'`;
  };
  const drawWords = () => {
    document.title = `${content.label}: label audit`;
    $("version").textContent = content.version;
    $("title").textContent = `Are the values of “${content.label}” right?`;
    $("source").textContent = `${content.file.name}, ${plural(content.file.rows, "row")}`;
    $("words").replaceChildren(...[...content.words, content.patternLine].map((line) => make("p", { dir: "auto" }, line)));
    $("trust").replaceChildren(...content.trust.map((line) => make("p", { dir: "auto" }, line)));
    $("command").textContent = `mislabel apply ${word(content.file.name)} decisions.json -o ${word(`cleaned${exported.extension || ".csv"}`)}`;
    $("apply").hidden = content.file.apply !== null;
    if (content.file.apply !== null) notice("no-apply", content.file.apply);
    $("patterns-section").hidden = !content.patterns.length;
    $("patterns").replaceChildren(...content.patterns.map((pattern, k) => make("li", {},
      make("span", { dir: "auto" }, make("strong", {}, `${pattern.ranks.length} suspects fit ${pattern.words}`), ` (${pattern.certainty}; ${pattern.byAccident < 0.1 ? "almost none" : fixed(pattern.byAccident, 1)} expected by accident)`),
      make("span", {},
        make("button", { type: "button", onclick: () => { $("view").value = `pattern${k}`; pageNumber = 0; draw(); $("review").scrollIntoView(); } }, "Show"), " ",
        make("button", { type: "button", class: "primary", onclick: () => confirmPattern(pattern) }, `Accept all ${pattern.ranks.length}`)))));
    const used = make("p", { dir: "auto" }, `Used as features: ${content.used.slice(0, 60).join(", ")}${content.used.length > 60 ? ", …" : ""}.`);
    $("columns").replaceChildren(used);
    for (const item of content.leftOut) $("columns").append(make("p", { dir: "auto" }, `Left out: ${item.column} (${item.reason}).`));
    if (size < content.file.rows) $("columns").append(make("p", {}, `This page holds the ${plural(size, "row")} that look most suspicious, out of ${plural(content.file.rows, "row")}; all of them are in audit.csv.${content.file.apply === null ? " The cleaned file is made by the command below." : ""}`));
    for (const item of content.notes) $("columns").append(make("p", { dir: "auto", class: "muted" }, `Note: ${item}`));
  };
  const missing = rows.label.some((value) => !Number.isFinite(value));
  const drawViews = () => {
    const chosen = $("view").value;
    const again = [...decisions.keys()].some((position) => rankOf.has(position) && suggestedOtherwise(rankOf.get(position)));
    const options = [["suspects", missing ? "suspects and missing labels" : "suspects"], ["undecided", "undecided suspects"], ["decided", "decided rows"], ["all", "all rows"],
      ...(again || chosen === "again" ? [["again", "decisions to look at again"]] : []),
      ...content.patterns.map((pattern, k) => [`pattern${k}`, `pattern: ${pattern.words}`])];
    $("view").replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
    $("view").value = chosen || (content.suspects || missing ? "suspects" : "all");
  };

  /* ---- start ---------------------------------------------------------------------------------------------------------------- */

  drawLoaded(store.load());
  updateColors();
  drawWords();
  drawTakenOver();
  drawStorage();
  drawViews();
  drawHead();
  panel?.draw();
  draw();
  drawProgress();
  drawHistogram();
  drawCalibration();
  drawDetectable();
  drawFeatures();
  drawScatter();
  $("scatter").setAttribute("aria-label", `Scatter plot of ${plural(size, "label")} against what is expected of them, ${plural(content.suspects, "suspect")} marked. The review table holds the same rows.`);
  $("view").addEventListener("change", () => { pageNumber = 0; draw(); announce(`${plural(shown.length, "row")} shown.`); });
  let waiting = 0;
  $("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => { pageNumber = 0; draw(); announce(`${plural(shown.length, "row")} match.`); }, 120); });
  $("previous").addEventListener("click", () => { pageNumber--; draw(); });
  $("next").addEventListener("click", () => { pageNumber++; draw(); });
  $("undo").addEventListener("click", undo);
  window.addEventListener("storage", (event) => {
    if (event.key !== key) return;
    const elsewhere = new Set(store.sync());
    if (!elsewhere.size) return;
    // Its list would not be what gets written.
    $("confirm").close();
    whileTyping(refresh);
    tellElsewhere(elsewhere, new Set());
  });
  $("export-decisions").addEventListener("click", () => download("decisions.json", exported.decisionsText(), "application/json"));
  $("export-clean").hidden = !exported.available;
  $("export-clean").textContent = exported.table.name;
  $("export-clean").title = exported.table.title;
  $("export-clean").addEventListener("click", () => download(exported.table.file, exported.tableText(), "text/csv"));
  const cancelled = () => announce("Nothing was written.");
  $("confirm-cancel").addEventListener("click", () => { $("confirm").close(); cancelled(); });
  $("confirm").addEventListener("cancel", cancelled);
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
