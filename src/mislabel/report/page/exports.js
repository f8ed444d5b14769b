"use strict";
/* What leaves the page: the decisions, and a table with the labels they make. */
const auditExports = ({ data, decisions, reviewer }) => {
  const { content, rows, size, rankOf, idOf, numbers: { write } } = data;
  const { file, cells } = content;

  /* By what a row is known again in a file that has grown or was sorted. */
  const contentOf = (rank) => {
    if (rank === undefined || !content.contents) return {};
    const bytes = [...rows.content.subarray(8 * rank, 8 * rank + 8)].map((byte) => byte.toString(16).padStart(2, "0"));
    const copies = content.contents.copies[rank];
    return { content: bytes.join(""), ...(copies ? { copies } : {}) };
  };
  const evidenceOf = (rank) => (rank === undefined ? {} : { evidence: Object.fromEntries(Object.entries({
    expected: rows.expected[rank], low: rows.expected[rank] - rows.half[rank], high: rows.expected[rank] + rows.half[rank], z: rows.z[rank], q_value: rows.q[rank],
  }).filter(([, value]) => Number.isFinite(value))) });
  const earlier = new Map(content.earlier.map((entry) => [entry.position, entry]));
  /* Those of this page, and those from before, which nobody decides again. */
  const decisionAt = (position) => decisions.get(position) ?? earlier.get(position);
  const decisionList = () => [
    ...[...decisions].map(([position, decision]) => ({
      position, row: rankOf.has(position) ? idOf(rankOf.get(position)) : decision.row ?? (content.ids ? null : String(position)),
      label: decision.label, action: decision.action, value: decision.value, note: decision.note,
      reviewed: !decision.together, ...contentOf(rankOf.get(position)), ...evidenceOf(rankOf.get(position)),
    })),
    ...content.earlier.filter((entry) => !decisions.has(entry.position)).map((entry) => ({ ...entry, earlier: true, ...contentOf(rankOf.get(entry.position)) })),
  ].sort((one, other) => one.position - other.position);
  const inFile = (list) => ({
    format: "mislabel-decisions/1", file: { name: file.name, sha256: file.sha256, rows: file.rows, sheet: file.sheet, decimal: file.decimal, thousands: file.thousands, header: file.header, skip: file.skip, na: file.na },
    label: content.label, id: content.id, content: content.contents ? content.contents.columns : null, audit: content.settings,
    ...(reviewer() ? { reviewer: reviewer() } : {}), exported: new Date().toISOString(), decisions: list,
  });
  const decisionsText = () => JSON.stringify(inFile(decisionList()), null, 1);
  /* The same with what the page must know again: what was suggested and in which audit, settings, and what is about no row here. */
  const savedText = ({ strangers, settings }) => {
    const known = ({ suggested, audit }) => ({ suggested, audit });
    const list = decisionList().map((item) => (item.earlier ? item : { ...item, ...known(decisions.get(item.position)) }));
    return JSON.stringify({ ...inFile([...list, ...strangers].sort((one, other) => one.position - other.position)), settings }, null, 1);
  };

  /* Which table the page can make, what it is called, and what it is not. */
  const extension = (/(\.(csv|tsv|txt))?\.[^.]+$/i.exec(file.name) ?? [""])[0];
  const base = file.name.slice(0, file.name.length - extension.length);
  const better = file.apply === null ? ": for the cleaned file export the decisions and use mislabel apply" : "";
  const kinds = {
    cleaned: { name: "Export cleaned CSV", file: `${base}-cleaned${extension}`, title: "Your file with the decided labels changed and dropped rows left out; everything else is as it was." },
    copy: { name: "Export CSV copy", file: `${base}-copy.csv`, title: `All cells of your file, the decided labels changed, but with quotes, line ends or an encoding of its own${better}.` },
    labels: { name: "Export labels as CSV", file: `${base}-labels.csv`, title: `Row ids, labels and decisions, without the other columns${better}.` },
  };
  const table = kinds[cells ? (cells.exact ? "cleaned" : "copy") : "labels"];
  const available = Boolean(cells) || size === file.rows;

  const dialect = file.dialect ?? { delimiter: ",", lineEnd: "\n", mark: false };
  const quoted = (cell) => (/["\r\n]/.test(cell) || cell.includes(dialect.delimiter) ? `"${cell.replace(/"/g, '""')}"` : cell);
  // A single empty cell must not look like an empty line.
  const line = (entries) => (entries.length === 1 && entries[0] === "" ? '""' : entries.map(quoted).join(dialect.delimiter));

  const cellLines = () => {
    const lines = [line(cells.header)];
    cells.rows.forEach((entries, position) => {
      const decision = decisionAt(position);
      if (decision?.action === "drop") return;
      const changed = decision && Number.isFinite(decision.value);
      lines.push(line(changed ? entries.map((cell, k) => (k === cells.label ? write(decision.value) : cell)) : entries));
    });
    return lines;
  };
  // Spreadsheets compute what begins so; a number is only a number.
  const safe = (cell) => (/^[=+\-@\t\r]/.test(cell) && !/^[+-]?[\d.,]+$/.test(cell) ? `'${cell}` : cell);
  const labelLines = () => {
    const lines = [line([content.id ?? "row", content.label, "decision"].map(safe))];
    for (let position = 0; position < size; position++) {
      const rank = rankOf.get(position), decision = decisionAt(position);
      if (decision?.action === "drop") continue;
      const value = decision && Number.isFinite(decision.value) ? decision.value : rows.label[rank];
      lines.push(line([safe(idOf(rank)), Number.isFinite(value) ? write(value) : "", decision ? decision.action : ""]));
    }
    return lines;
  };
  const tableText = () => {
    const lines = cells ? cellLines() : labelLines();
    return (dialect.mark ? "\ufeff" : "") + lines.join(dialect.lineEnd) + dialect.lineEnd;
  };

  return { extension, table, available, decisionsText, savedText, tableText };
};
