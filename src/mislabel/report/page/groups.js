"use strict";
/* Groups of rows that were judged as a whole: a section of its own, where there are any. */
(() => {
  const { groups } = JSON.parse(document.getElementById("content").textContent);
  if (!groups) return;
  const MOST = 50;
  const element = (tag, text, options = {}) => Object.assign(document.createElement(tag), { textContent: text }, options);
  const section = element("section", "", { id: "groups-section" });
  section.setAttribute("aria-labelledby", "groups-title");
  const words = element("p", groups.words, { id: "groups-words" });
  const table = element("table", "", { id: "groups" });
  const head = element("tr", "");
  for (const name of ["Group", "Rows", "If it is wrong", "p-value", "q-value", ""]) {
    head.append(element("th", name, { scope: "col", className: name.includes("value") || name === "Rows" ? "number" : "" }));
  }
  const top = element("thead", "");
  top.append(head);
  const body = element("tbody", "");
  for (const entry of groups.entries.slice(0, MOST)) {
    const row = element("tr", "");
    row.append(
      element("td", entry.group, { dir: "auto" }),
      element("td", entry.rows.toLocaleString("en"), { className: "number" }),
      element("td", entry.words),
      element("td", entry.p_value.toPrecision(2), { className: "number" }),
      element("td", entry.q_value.toPrecision(2), { className: "number" }),
      element("td", entry.suspect ? "suspect" : ""),
    );
    body.append(row);
  }
  table.append(top, body);
  const wrap = element("div", "", { className: "table-wrap", tabIndex: 0 });
  wrap.setAttribute("role", "region");
  wrap.setAttribute("aria-labelledby", "groups-title");
  wrap.append(table);
  // Where no group is suspect, the table is there for whoever wants to see it.
  let shown = wrap;
  if (!groups.entries.some((entry) => entry.suspect)) {
    shown = element("details", "");
    shown.append(element("summary", "All groups"), wrap);
  }
  section.append(element("h2", "Groups judged as a whole", { id: "groups-title" }), words, shown);
  document.querySelector("main section").before(section);
})();
