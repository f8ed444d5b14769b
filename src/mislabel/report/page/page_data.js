"use strict";
/* The data of the page, unpacked. Rows go by their rank, the most suspicious first; their position is that in the file. */
const pageData = (content) => {
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
    detectable: unpack(packed.detectable, Float32Array),
    side: packed.side ? unpack(packed.side, Int8Array) : null,
    content: content.contents ? unpack(content.contents.rows, Uint8Array) : null,
  };
  const size = rows.position.length;
  const numbers = numberNotation(content.numbers);
  const { tidy, full, show } = numbers;

  const rankOf = new Map();
  rows.position.forEach((position, rank) => rankOf.set(position, rank));
  const idOf = (rank) => (content.ids ? content.ids[rank] : String(rows.position[rank]));
  const LONGEST_ID = 200;
  const shownId = (rank) => (idOf(rank).length > LONGEST_ID ? `${idOf(rank).slice(0, LONGEST_ID - 1)}…` : idOf(rank));
  const hasShortId = (rank) => idOf(rank).length <= LONGEST_ID;
  const rowAt = (position) => (rankOf.has(position) ? `row ${shownId(rankOf.get(position))}` : `the row at position ${position}`);

  const patternOf = new Map();
  content.patterns.forEach((pattern, k) => pattern.ranks.forEach((rank) => patternOf.set(rank, k)));
  const { details } = content;
  const nearOf = new Map(details.nearOf.map((rank, k) => [rank, details.near[k]]));
  const featuresOf = (rank) => (details.rank[rank] === undefined ? null : details.features[details.rank[rank]]);
  /* Columns in which the row has no value. */
  const gapsOf = (rank) => (details.gaps[details.rank[rank]] ?? []).map((k) => details.columns[k]);

  /* The label, with its sign where it is only a limit. */
  const labelText = (rank) => (rows.side?.[rank] ? `${rows.side[rank] < 0 ? "<" : ">"} ` : "") + full(rows.label[rank]);
  const decidedBefore = new Set(content.earlier.map((entry) => entry.position)); // decided in an earlier audit
  const again = new Set(content.again); // decided there too, but by people who differ, or about another label
  const isOpen = (rank) => !decidedBefore.has(rows.position[rank]) && (rows.suspect[rank] || !Number.isFinite(rows.label[rank]));
  const isAskedAgain = (rank) => again.has(rank);
  const isAsked = (rank) => isOpen(rank) || isAskedAgain(rank);
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
  const suggestionOf = (rank) => (isOpen(rank) ? tidy(rows.suggested[rank]) : Number(rows.expected[rank].toPrecision(Math.max(6, digitsOf(rank)))));
  /* Half the width of the interval that most rows have. */
  const usualHalf = (() => {
    const known = rows.half.filter(Number.isFinite).sort();
    return known.length ? known[Math.floor(known.length / 2)] : NaN;
  })();

  return {
    content, rows, size, numbers, unpack, rankOf, idOf, shownId, hasShortId, rowAt, patternOf, nearOf, featuresOf, gapsOf, labelText, isOpen,
    decidedBefore, isAsked, isAskedAgain,
    digitsOf, expectedText, suggestionOf, usualHalf,
  };
};
