"use strict";
/* The page: which rows are shown in which order, the table, the keys, and what belongs together. */
const startPage = async () => {
  const content = JSON.parse($("content").textContent);
  const PAGE = 50;
  const data = pageData(content);
  const { rows, size, rankOf, idOf, shownId, patternOf, featuresOf, labelText, isOpen, isAsked, isAskedAgain, expectedText, suggestionOf, numbers: { full, show, fixed } } = data;

  const rules = decisionRules({
    audit: content.audit, size: content.file.rows, decidedBefore: data.decidedBefore,
    labelAt: (position) => (!rankOf.has(position) ? undefined : Number.isFinite(rows.label[rankOf.get(position)]) ? rows.label[rankOf.get(position)] : null),
  });
  // Sheets of a workbook have rows of their own.
  const key = `mislabel:${content.file.sha256}:${content.label}${content.file.sheet === null ? "" : `\nsheet ${content.file.sheet}`}`;
  const store = content.served
    ? servedStore({ rules, textOf: (more) => exported.savedText(more), told: (news) => whenSaved(news) })
    : browserStore({ key, rules });
  const exported = auditExports({ data, decisions: store.decisions, reviewer: () => printable($("reviewer").value) });
  const verdicts = reviewVerdicts({
    data, store, redraw: () => refresh(), select: (rank) => select(rank), look: (view) => showView(view), boundLine: () => panel?.boundLine(),
  });
  const { decisionOf, verdictOf, suggestedOtherwise } = verdicts;
  const pictures = auditPictures({ data, decisionOf, current: () => current, pick: (rank) => lookAt(rank, "center") });
  const panel = certificatePanel({ content, size, unpack: data.unpack, decisionOf, open: (rank) => followSample(rank) });
  const detail = rowDetail({
    data, verdicts, drawn: rowPicture({ data }).draw, onAccept: (rank) => acceptAndGoOn(rank), focusRow: () => focusRow(),
    sampleLine: (rank) => (panel ? panel.rowLine(rank) : []),
  });

  /* ---- which rows, in which order ---------------------------------------------------------------------------------- */

  const COLUMNS = [
    { name: "Row", value: (rank) => idOf(rank), text: (rank) => shownId(rank), header: true },
    { name: "Label", value: (rank) => rows.label[rank], text: (rank) => labelText(rank), number: true },
    { name: "Expected", value: (rank) => rows.expected[rank], text: (rank) => expectedText(rank), number: true },
    { name: "Suggested", value: (rank) => suggestionOf(rank), text: (rank) => (isOpen(rank) ? full(suggestionOf(rank)) : ""), number: true },
    { name: "z", value: (rank) => Math.abs(rows.z[rank]), text: (rank) => (Number.isFinite(rows.z[rank]) ? fixed(rows.z[rank], 1) : ""), number: true },
    { name: "q", value: (rank) => rows.q[rank], text: (rank) => (rows.q[rank] < 1e-4 ? `< ${show(0.0001)}` : show(rows.q[rank], 2)), number: true },
    { name: "Suspicion", value: (rank) => rank, text: (rank) => [rows.suspect[rank] ? "suspect" : Number.isFinite(rows.label[rank]) ? "" : "missing", isAskedAgain(rank) ? "decide again" : ""].filter(Boolean).join(", ") + (patternOf.has(rank) ? ", pattern" : "") },
    { name: "Decision", value: (rank) => verdictOf(rank), text: (rank) => verdictOf(rank), verdict: true },
  ];
  const LONG_ID = 32;
  let sortBy = 6, ascending = true, pageNumber = 0, current = -1, opened = false;
  let shown = new Int32Array(0);

  const inView = (rank, view) => {
    if (view === "suspects") return isAsked(rank);
    if (view === "undecided") return isAsked(rank) && !decisionOf(rank);
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
  const missing = rows.label.some((value) => !Number.isFinite(value));
  const drawViews = () => {
    const chosen = $("view").value;
    const options = [["suspects", missing ? "suspects and missing labels" : "suspects"], ["undecided", "undecided suspects"], ["decided", "decided rows"], ["all", "all rows"],
      ...(verdicts.anyOtherwise() || chosen === "again" ? [["again", "decisions to look at again"]] : []),
      ...content.patterns.map((pattern, k) => [`pattern${k}`, `pattern: ${pattern.words}`])];
    $("view").replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
    $("view").value = chosen || (content.suspects || missing || content.again.length ? "suspects" : "all");
  };
  const showView = (view) => {
    $("view").value = view;
    pageNumber = 0;
    draw();
    $("review").scrollIntoView();
    announce(`${plural(shown.length, "row")} shown.`);
  };

  /* ---- the table ----------------------------------------------------------------------------------------------------- */

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
      $("head").children[k].firstChild.focus();
      announce(`Sorted by ${column.name}, ${ascending ? "ascending" : "descending"}.`);
    } }, column.name + (k === sortBy ? (ascending ? " ▲" : " ▼") : "")))));
  };
  const drawRow = (rank) => {
    const cells = COLUMNS.map((column) => {
      const text = column.text(rank);
      const cell = make(column.header ? "th" : "td", {
        scope: column.header ? "row" : undefined, class: column.number ? "number" : column.header && text.length > LONG_ID ? "long" : "",
        "data-name": column.name, dir: column.header ? "auto" : undefined,
      });
      if (column.verdict) cell.append(make("span", { class: "verdict" }, text));
      else if (column.name === "Suspicion" && rows.suspect[rank]) cell.append(make("span", { class: "suspect-mark" }, text));
      else cell.append(text);
      return cell;
    });
    return make("tr", {
      class: `row${rank === current ? " current" : ""}`, "data-rank": rank, tabindex: rank === current ? "0" : "-1",
      "aria-current": rank === current ? "true" : undefined, "aria-expanded": rank === current && opened ? "true" : "false",
      onclick: () => { if (current === rank) { opened = !opened; draw(); focusRow(); } else select(rank, true); },
    }, ...cells);
  };
  const draw = () => {
    compute();
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    pageNumber = Math.min(Math.max(pageNumber, 0), pages - 1);
    const lines = [];
    for (const rank of shown.slice(pageNumber * PAGE, (pageNumber + 1) * PAGE)) {
      lines.push(drawRow(rank));
      if (rank === current && opened) lines.push(detail.draw(rank, COLUMNS.length));
    }
    if (!lines.length) lines.push(make("tr", {}, make("td", { colspan: String(COLUMNS.length) }, "No rows match.")));
    $("body").replaceChildren(...lines);
    $("page").textContent = `${plural(shown.length, "row")}, page ${pageNumber + 1} of ${pages}`;
    $("previous").disabled = pageNumber === 0;
    $("next").disabled = pageNumber >= pages - 1;
    panel?.drawShown(shown, `${$("view").value}\n${$("search").value}`);
    const first = $("body").querySelector("tr.row");
    if (first && !$("body").querySelector("tr.current")) first.tabIndex = 0;
  };
  const drawProgress = () => {
    let done = 0, total = 0;
    const tally = { accept: 0, edit: 0, keep: 0, drop: 0 };
    for (let rank = 0; rank < size; rank++) if (isAsked(rank)) { total++; if (decisionOf(rank)) done++; }
    for (const decision of store.decisions.values()) tally[decision.action]++;
    $("progress").textContent = `${done.toLocaleString("en")} of ${plural(total, missing ? "suspect or missing label" : "suspect")} decided; ${tally.accept} accepted, ${tally.edit} edited, ${tally.keep} kept, ${tally.drop} to drop.`;
    $("bar").max = Math.max(total, 1);
    $("bar").value = done;
    $("undo").disabled = !verdicts.canUndo();
  };
  const drawSaved = () => { $("saved").textContent = store.status?.() ?? ""; };
  const refresh = () => {
    verdicts.drawTakenOver();
    verdicts.drawStorage();
    drawSaved();
    drawViews();
    panel?.draw();
    draw();
    drawProgress();
    requestAnimationFrame(pictures.drawScatter);
  };
  /* Redraw without losing what somebody is typing into the table. */
  const whileTyping = (redraw) => {
    const typed = ["edit", "note"].map((id) => [id, $(id)?.value]), focused = document.activeElement?.id;
    const onRow = document.activeElement?.closest("tr.current") !== null;
    const before = current;
    redraw();
    for (const [id, text] of typed) if (text !== undefined && $(id) && current === before) $(id).value = text;
    if (focused === "edit" || focused === "note") $(focused)?.focus();
    else if (onRow) focusRow();
  };
  const takeOver = (tell) => {
    // Its list would not be what gets written.
    $("confirm").close();
    whileTyping(refresh);
    tell();
  };
  const whenSaved = ({ elsewhere = [], both = [] }) => {
    if (elsewhere.length || both.length) takeOver(() => verdicts.tellRefused({ elsewhere, both }));
    verdicts.drawStorage();
    drawSaved();
  };

  /* ---- from row to row ----------------------------------------------------------------------------------------------- */

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
    requestAnimationFrame(pictures.drawScatter);
  };
  const lookAt = (rank, where) => { select(rank, true); $("body").querySelector("tr.current")?.scrollIntoView({ block: where }); };
  const step = (by) => {
    if (!shown.length) return;
    const at = shown.indexOf(current);
    const to = at < 0 ? (by > 0 ? pageNumber * PAGE : shown.length - 1) : Math.min(Math.max(at + by, 0), shown.length - 1);
    select(shown[to]);
  };
  let followed = -1; // the row that was opened as the next of the random sample
  const followSample = (rank, before = "") => {
    followed = rank;
    lookAt(rank, "start");
    announce(`${before} Row ${shownId(rank)}, next of the random sample.`.trim());
  };
  /* The next row is that of the random sample for those who follow it, else the next of the table. */
  const acceptAndGoOn = (rank) => {
    const next = shown[shown.indexOf(rank) + 1], inSample = rank === followed;
    if (!verdicts.accept(rank)) return;
    focusRow();
    if (!$("advance").checked) return;
    const told = $("live").textContent;
    if (inSample) { if (panel.next() !== null) followSample(panel.next(), told); }
    else if (next !== undefined) select(next);
    else announce(`${told} That was the last row.`);
  };
  document.addEventListener("keydown", (event) => {
    if ($("confirm").open) return;
    const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) { event.preventDefault(); verdicts.undo(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing) { if (event.key === "Escape") typing.blur(); return; }
    const active = current >= 0 && shown.includes(current) ? current : -1;
    const letter = event.key.toLowerCase();
    const onRow = { k: verdicts.keep, d: verdicts.drop };
    if (event.key === "ArrowDown") step(1);
    else if (event.key === "ArrowUp") step(-1);
    else if (event.key === "/") $("search").focus();
    else if (letter === "u") verdicts.undo();
    else if (letter === "s" && panel) panel.goOn();
    else if (active < 0) return;
    else if (event.key === "Enter" && event.target.closest("tr.row")) { opened = !opened; draw(); focusRow(); }
    else if (letter === "a") acceptAndGoOn(active);
    else if (onRow[letter]) { onRow[letter](active); focusRow(); }
    else if (letter === "e" || letter === "n") { opened = true; draw(); $(letter === "e" ? "edit" : "note").focus(); $(letter === "e" ? "edit" : "note").select(); }
    else return;
    event.preventDefault();
  });

  /* ---- start ---------------------------------------------------------------------------------------------------------------- */

  const download = (name, text, kind) => {
    const address = URL.createObjectURL(new Blob([text], { type: kind }));
    const link = make("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };
  const listen = () => {
    $("view").addEventListener("change", () => { pageNumber = 0; draw(); announce(`${plural(shown.length, "row")} shown.`); });
    let waiting = 0;
    $("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => { pageNumber = 0; draw(); announce(`${plural(shown.length, "row")} ${shown.length === 1 ? "matches" : "match"}.`); }, 120); });
    $("previous").addEventListener("click", () => { pageNumber--; draw(); announce(`${$("page").textContent}.`); });
    $("next").addEventListener("click", () => { pageNumber++; draw(); announce(`${$("page").textContent}.`); });
    $("undo").addEventListener("click", verdicts.undo);
    $("advance").addEventListener("change", () => {
      store.setting("advance", $("advance").checked);
      announce($("advance").checked ? "Accepting goes on to the next row." : "Accepting stays on its row.");
    });
    $("reviewer").addEventListener("change", () => store.setting("reviewer", printable($("reviewer").value)));
    store.watch((changed) => { if (changed.length) takeOver(() => verdicts.tellElsewhere(new Set(changed), new Set())); });
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
      pictures.updateColors();
      pictures.drawScatter();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { pictures.updateColors(); pictures.drawScatter(); });
    new ResizeObserver(() => pictures.drawScatter()).observe($("scatter"));
  };

  verdicts.drawLoaded(await store.load());
  $("advance").checked = store.setting("advance") !== false;
  $("reviewer").value = store.setting("reviewer") ?? "";
  pictures.updateColors();
  drawOpening({ data, exported, showPattern: (k) => showView(`pattern${k}`), acceptPattern: (pattern) => confirmPattern({ data, verdicts, pattern }) });
  drawHead();
  refresh();
  pictures.drawHistogram();
  pictures.drawCalibration();
  pictures.drawDetectable();
  pictures.drawFeatures();
  $("scatter").setAttribute("aria-label", `Scatter plot of ${plural(size, "label")} against what is expected of them, ${plural(content.suspects, "suspect")} marked. The review table holds the same rows.`);
  listen();
  document.documentElement.dataset.ready = "yes";
};
startPage();
