"use strict";
/* An opened row: why its label is suspect, its features, its most similar trusted rows, and what to do with it. */
const rowDetail = ({ data, verdicts, drawn, onAccept, focusRow, sampleLine }) => {
  const { content, rows, shownId, labelText, digitsOf, suggestionOf, patternOf, nearOf, featuresOf, gapsOf, usualHalf, numbers: { full, show, fixed } } = data;
  const MOST_COLUMNS = 8, MOST_GAPS = 5;

  const gapsLine = (rank) => {
    const gaps = gapsOf(rank);
    if (!gaps.length) return "";
    const named = gaps.slice(0, MOST_GAPS).join(", ") + (gaps.length > MOST_GAPS ? ` and ${gaps.length - MOST_GAPS} more` : "");
    return named + (rows.half[rank] > 1.05 * usualHalf ? ": expected less precisely than in most rows" : "");
  };
  const detectableLine = (rank) => {
    const size = rows.detectable[rank];
    return Number.isFinite(size) ? `an error of ${show(size, 2)} or more would probably be noticed in this row` : "no error of a plausible size would be noticed in this row";
  };
  const facts = (rank) => {
    const list = make("dl", {});
    const fact = (name, value) => list.append(make("dt", {}, name), make("dd", { dir: "auto" }, value));
    const decision = verdicts.decisionOf(rank), digits = digitsOf(rank);
    fact("row", shownId(rank));
    fact("label", labelText(rank));
    fact("expected", `${show(rows.expected[rank], digits)}, clean labels between ${show(rows.expected[rank] - rows.half[rank], digits)} and ${show(rows.expected[rank] + rows.half[rank], digits)}`);
    if (Number.isFinite(rows.z[rank])) fact("off by", `${show(rows.label[rank] - rows.expected[rank])}, ${fixed(Math.abs(rows.z[rank]), 1)} standard deviations`);
    fact("suggested", full(suggestionOf(rank)));
    if (verdicts.suggestedOtherwise(rank)) fact("decided on", `a suggestion of ${decision.suggested === null ? "nothing" : full(decision.suggested)} in an earlier audit`);
    if (patternOf.has(rank)) fact("pattern", content.patterns[patternOf.get(rank)].words);
    if (gapsLine(rank)) fact("no value for", gapsLine(rank));
    fact("detectable", detectableLine(rank));
    fact("position", `${rows.position[rank]} (counted from 0)`);
    return list;
  };
  const ownFeatures = (rank) => {
    const features = featuresOf(rank);
    if (!features || !features.length) return [];
    const list = make("dl", {});
    content.details.columns.forEach((name, k) => list.append(make("dt", { dir: "auto" }, name), make("dd", { dir: "auto" }, features[k] || "no value")));
    return [make("h3", {}, "This row"), list];
  };
  const neighbours = (rank) => {
    const near = nearOf.get(rank);
    if (!near || !near.length) return make("p", { class: "muted" }, near ? "There are no trusted rows to compare this one with." : "Neighbours are kept for the most suspicious rows only.");
    // The column of the picture comes first.
    const all = content.details.columns, first = all.indexOf(content.telling?.column);
    const columns = [...(first < 0 ? [] : [first]), ...all.keys()].filter((k, at, list) => list.indexOf(k) === at).slice(0, MOST_COLUMNS);
    const body = make("tbody", {}, ...near.map(([other, at, similarity]) => {
      const values = content.details.features[at];
      return make("tr", {}, make("th", { scope: "row", dir: "auto" }, shownId(other)), make("td", { class: "number" }, labelText(other)),
        make("td", { class: "number" }, fixed(similarity, 3)), ...columns.map((k) => make("td", { dir: "auto" }, values[k] || "no value")));
    }));
    const head = make("thead", {}, make("tr", {}, ...["row", "label", "similarity", ...columns.map((k) => all[k])].map((name) => make("th", { scope: "col", dir: "auto" }, name))));
    return make("div", { class: "inner", tabindex: "0", role: "region", "aria-label": "Most similar trusted rows" }, make("table", {}, head, body));
  };
  /* A box that Enter takes over and Escape leaves. */
  const box = (attributes, taken) => {
    const input = make("input", { autocomplete: "off", ...attributes });
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") taken(input.value);
      if (event.key === "Escape") focusRow();
      event.stopPropagation();
    });
    return input;
  };
  const actions = (rank) => {
    const decision = verdicts.decisionOf(rank);
    const value = box({ id: "edit", inputmode: "decimal", value: verdicts.prefilled(rank), placeholder: full(suggestionOf(rank)), "aria-describedby": "edit-problem" },
      (text) => { if (verdicts.edit(rank, text)) focusRow(); });
    const text = box({ id: "note", value: decision?.note ?? "", dir: "auto" }, (typed) => { verdicts.note(rank, typed); focusRow(); });
    const act = (name, letter, action, kind = "") => make("button", { type: "button", class: kind, "data-action": name.toLowerCase().split(" ")[0], onclick: (event) => { event.stopPropagation(); action(); } }, `${name} `, make("kbd", {}, letter));
    return make("div", { class: "actions" },
      act("Accept suggestion", "A", () => onAccept(rank), "primary"), act("Keep label", "K", () => verdicts.keep(rank)), act("Drop row", "D", () => verdicts.drop(rank)),
      make("span", { class: "pair" }, make("label", {}, "New value ", value), act("Edit", "E", () => verdicts.edit(rank, value.value))),
      make("span", { class: "pair" }, make("label", {}, "Note ", text), act("Note", "N", () => verdicts.note(rank, text.value))),
      ...(decision ? [make("button", { type: "button", "data-action": "clear", onclick: () => verdicts.clear(rank) }, "Undecide")] : []));
  };
  const draw = (rank, columns) => {
    const left = make("div", {}, make("h3", {}, "Evidence"), facts(rank), ...ownFeatures(rank));
    const right = make("div", {}, ...drawn(rank), make("h3", {}, "Most similar trusted rows"), neighbours(rank));
    return make("tr", { class: "detail" }, make("td", { colspan: String(columns) }, actions(rank), make("p", { id: "edit-problem", class: "problem" }),
      ...sampleLine(rank), make("div", { class: "detail-grid" }, left, right)));
  };
  return { draw };
};
