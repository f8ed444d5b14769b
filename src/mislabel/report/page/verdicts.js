"use strict";
/* Deciding, undeciding and undoing, and what happened to decisions without anybody's doing. */
const reviewVerdicts = ({ data, store, redraw, select, look, boundLine }) => {
  const { content, rows, rankOf, shownId, hasShortId, rowAt, suggestionOf, numbers: { write, full, read } } = data;
  const { decisions } = store; // position -> decision
  const decisionOf = (rank) => decisions.get(rows.position[rank]);
  const undoStack = [];

  const orNull = (value) => (Number.isFinite(value) ? value : null);
  const made = (rank, action, value, note = decisionOf(rank)?.note ?? "", together = false) => [rows.position[rank], {
    action, value, note, label: orNull(rows.label[rank]), suggested: orNull(suggestionOf(rank)), audit: content.audit,
    ...(content.ids && hasShortId(rank) ? { row: data.idOf(rank) } : {}),
    ...(together ? { together } : {}),
  }];

  const tellElsewhere = (elsewhere, replaced) => {
    const both = [...elsewhere].filter((position) => replaced.has(position)).length;
    const parts = [];
    if (elsewhere.size > both) parts.push(`${plural(elsewhere.size - both, "decision")} made in another tab ${elsewhere.size - both === 1 ? "was" : "were"} taken over.`);
    if (both) parts.push(`${plural(both, "decision")} made in another tab ${both === 1 ? "was" : "were"} replaced by what was decided here later; undo brings ${both === 1 ? "it" : "them"} back.`);
    if (parts.length) notice("elsewhere", parts.join(" "), ["Close", () => notice("elsewhere", "")]);
  };
  /* After a save that was refused because the file held newer decisions. */
  const tellRefused = ({ elsewhere, both }) => {
    const parts = ["The saved decisions were changed in another tab or program meanwhile."];
    if (elsewhere.length) parts.push(`${plural(elsewhere.length, "decision")} made there ${elsewhere.length === 1 ? "was" : "were"} taken over.`);
    if (both.length) parts.push(`${both.length === 1 ? "One row was" : `${both.length.toLocaleString("en")} rows were`} decided otherwise there; what was decided here stays: ${both.slice(0, 3).map(rowAt).join(", ")}${both.length > 3 ? ", …" : ""}.`);
    if (elsewhere.length || both.length) notice("elsewhere", parts.join(" "), ["Close", () => notice("elsewhere", "")]);
  };

  const decide = (changes, message) => {
    const elsewhere = new Set(store.sync());
    if (changes.every(([position, decision]) => store.same(decision, decisions.get(position)))) {
      redraw();
      tellElsewhere(elsewhere, new Set());
      return announce("Decided so already.");
    }
    const steps = changes.map(([position, decision]) => ({ position, before: decisions.get(position) ?? null, after: decision }));
    undoStack.push(steps);
    store.change(changes);
    const before = boundLine();
    redraw();
    tellElsewhere(elsewhere, new Set(changes.map(([position]) => position)));
    return announce(boundLine() !== before ? `${message} ${boundLine()}`.trim() : message);
  };
  const undo = () => {
    const steps = undoStack.pop();
    if (!steps) return announce("Nothing to undo since this page was opened.");
    tellElsewhere(new Set(store.sync()), new Set());
    const ours = steps.filter(({ position, after }) => store.same(decisions.get(position), after));
    store.change(ours.map(({ position, before }) => [position, before]));
    redraw();
    if (ours.length === 1 && rankOf.has(ours[0].position)) select(rankOf.get(ours[0].position));
    const others = steps.length - ours.length;
    return announce(`Undone: ${ours.length === 1 ? rowAt(ours[0].position) : plural(ours.length, "row")}.${others ? ` ${plural(others, "row")} changed in another tab since, and left as ${others === 1 ? "it is" : "they are"}.` : ""}`);
  };
  /* Whether there was anything to accept. */
  const accept = (rank) => {
    if (!Number.isFinite(suggestionOf(rank))) {
      announce("There is no suggestion for this row.");
      return false;
    }
    decide([made(rank, "accept", suggestionOf(rank))], `Row ${shownId(rank)}: ${write(suggestionOf(rank))} accepted.`);
    return true;
  };
  const acceptAll = (ranks) => decide(ranks.map((rank) => made(rank, "accept", suggestionOf(rank), undefined, true)), `${plural(ranks.length, "row")}: correction accepted.`);
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
  const anyOtherwise = () => [...decisions.keys()].some((position) => rankOf.has(position) && suggestedOtherwise(rankOf.get(position)));
  const verdictOf = (rank) => {
    const decision = decisionOf(rank);
    if (!decision) return "";
    const told = { accept: () => `accepted: ${write(decision.value)}`, edit: () => `edited: ${write(decision.value)}`, keep: () => "keep", drop: () => "drop" };
    return told[decision.action]() + (takenOver(decision) ? " (earlier audit)" : "") + (decision.note ? " (note)" : "");
  };

  const drawStorage = () => notice("storage", store.problem());
  const drawTakenOver = () => {
    const taken = [...decisions].filter(([, decision]) => takenOver(decision));
    const others = taken.filter(([position]) => rankOf.has(position) && suggestedOtherwise(rankOf.get(position))).length;
    const outside = taken.filter(([position]) => !rankOf.has(position)).length;
    if (!taken.length) return notice("taken-over", "");
    const look_again = `look at ${others === 1 ? "it" : "them"} again`;
    const changed = others ? `; in ${others.toLocaleString("en")} of them the suggestion is another one now: ${look_again}` : "; their suggestions are the same";
    const hidden = outside ? ` ${plural(outside, "decision")} of them ${outside === 1 ? "is about a row" : "are about rows"} that this page does not hold; ${outside === 1 ? "it is" : "they are"} exported with the others.` : "";
    return notice("taken-over", `${plural(taken.length, "decision")} from an earlier audit of this file ${taken.length === 1 ? "was" : "were"} taken over${changed}. Accepted values are those that were accepted then.${hidden}`,
      ...(others ? [["Show those rows", () => look("again")]] : []),
      ["Keep them all", () => decide(taken.map(([position, decision]) => [position, { ...decision, audit: content.audit }]), `${plural(taken.length, "decision")} kept.`)],
      ["Discard them all", () => decide(taken.map(([position]) => [position, null]), `${plural(taken.length, "decision")} discarded; undo brings ${taken.length === 1 ? "it" : "them"} back.`)]);
  };
  const drawLoaded = ({ older, misfits, unreadable, problem }) => {
    const where = content.served ? "They stay in the file." : "They are still in this browser's storage, under a name of their own.";
    if (older) notice("older", `${plural(older, "decision")} kept by an older version could not be matched with rows and ${older === 1 ? "was" : "were"} set aside. ${where}`);
    if (misfits) notice("misfits", `${plural(misfits, "decision")} ${content.served ? "in the file" : "kept by this browser"} ${misfits === 1 ? "does" : "do"} not fit the labels of this page and ${misfits === 1 ? "was" : "were"} set aside. ${where}`);
    if (unreadable) notice("older", `What this browser kept for this page could not be read and was set aside. ${where}`);
    if (problem) notice("older", problem);
  };

  return {
    decisionOf, accept, acceptAll, keep, drop, clear, edit, note, undo, prefilled, suggestedOtherwise, anyOtherwise, verdictOf,
    tellElsewhere, tellRefused, drawStorage, drawTakenOver, drawLoaded, canUndo: () => undoStack.length > 0,
  };
};
