"use strict";
/* A suspect among its like: labels against the column that tells most about them, with the most similar trusted rows marked. */
const rowPicture = ({ data }) => {
  const { content, rows, size, unpack, nearOf, labelText, shownId, numbers: { show } } = data;
  const { around, ticks, inside, beyond, pointer } = axes;
  const MOST = 500, WIDEST = 520, NARROWEST = 230, AROUND = 96, HEIGHT = 280, LEFT = 62, RIGHT = 14, TOP = 14, BOTTOM = 44;
  let width = WIDEST;
  const given = content.telling && { ...content.telling, x: unpack(content.telling.x, Float64Array), backX: unpack(content.telling.back.x, Float64Array), backY: unpack(content.telling.back.y, Float64Array) };

  /* What stands on the horizontal axis: the telling column, or what is expected where the row has no value in it. */
  const byColumn = (rank) => {
    const at = given ? content.details.rank[rank] : undefined;
    if (at === undefined || !Number.isFinite(given.x[at])) return null;
    const near = (nearOf.get(rank) ?? []).map(([other, where]) => ({ rank: other, x: given.x[where] }));
    return { name: given.column, x: given.x[at], near, backX: given.backX, backY: given.backY, names: given.names, kind: given.kind };
  };
  let some = null;
  const byExpected = (rank) => {
    if (!some) {
      some = { x: [], y: [] };
      const stride = Math.max(1, Math.floor(size / MOST));
      for (let other = 0; other < size; other += stride) if (!rows.suspect[other] && Number.isFinite(rows.label[other])) { some.x.push(rows.expected[other]); some.y.push(rows.label[other]); }
    }
    const near = (nearOf.get(rank) ?? []).map(([other]) => ({ rank: other, x: rows.expected[other] }));
    return { name: "what is expected", x: rows.expected[rank], near, backX: some.x, backY: some.y, names: null, kind: "number" };
  };

  const tickText = (shownBy, tick) => (shownBy.kind === "date" ? new Date(tick * 1000).toISOString().slice(0, 10) : show(tick, 6));
  const drawAxes = (drawing, shownBy, across, up, x, y) => {
    for (const tick of ticks(up, 4)) {
      drawing.append(svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick), stroke: "var(--line)" }),
        svg("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, show(tick, 6)));
    }
    const short = (name) => (name.length > 10 ? `${name.slice(0, 9)}…` : name);
    const marks = shownBy.names ? shownBy.names.map((name, k) => [k, short(name)]) : ticks(across, shownBy.kind === "date" ? 3 : 5).map((tick) => [tick, tickText(shownBy, tick)]);
    let free = -Infinity;
    for (const [value, text] of marks) {
      const half = 3.6 * text.length;
      if (x(value) - half < free || x(value) + half > width) continue;
      drawing.append(svg("text", { x: x(value), y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, text));
      free = x(value) + half + 4;
    }
    drawing.append(svg("text", { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, shownBy.name.length > 50 ? `${shownBy.name.slice(0, 49)}…` : shownBy.name));
  };
  const caption = (rank, shownBy, rim) => {
    const column = shownBy.name === given?.column;
    const why = column ? `, the column that tells most about labels (it accounts for ${Math.round(100 * given.share)} % of how they rank)`
      : given && content.details.rank[rank] !== undefined ? `: this row has no value for ${given.column}` : "";
    const close = plural(shownBy.near.length, "most similar trusted row");
    const edge = rim.length ? ` Beyond the axes, drawn at the rim: ${rim.join(", ")}.` : "";
    return `The label against ${shownBy.name}${why}, with ${shownBy.near.length ? `the ${close}` : "other trusted rows"} and what is expected here.${edge}`;
  };

  /* The elements to show above the neighbours of a row; none for a label that is missing and expected nowhere. */
  const draw = (rank) => {
    if (!Number.isFinite(rows.expected[rank])) return [];
    // As wide as it is drawn, so that its words are not small on a narrow screen.
    width = Math.min(Math.max(document.documentElement.clientWidth - AROUND, NARROWEST), WIDEST);
    const shownBy = byColumn(rank) ?? byExpected(rank);
    const low = rows.expected[rank] - rows.half[rank], high = rows.expected[rank] + rows.half[rank];
    const shownX = shownBy.near.map((other) => other.x).filter(Number.isFinite);
    const across = shownBy.names ? [-0.6, shownBy.names.length - 0.4] : widened(around(shownBy.backX), [shownBy.x, ...shownX]);
    const up = widened(around(shownBy.backY), [low, high, ...shownBy.near.map((other) => rows.label[other.rank])]);
    const x = (value) => LEFT + ((inside(value, across) - across[0]) / (across[1] - across[0])) * (width - LEFT - RIGHT);
    const y = (value) => HEIGHT - BOTTOM - ((inside(value, up) - up[0]) / (up[1] - up[0])) * (HEIGHT - TOP - BOTTOM);
    // Rows of one category side by side rather than on top of each other.
    const aside = (k) => (shownBy.names ? (((k * 0.618034) % 1) - 0.5) * 0.6 : 0);
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img" });
    drawAxes(drawing, shownBy, across, up, x, y);
    let far = 0;
    const stride = Math.max(1, Math.floor(shownBy.backX.length / MOST));
    for (let k = 0; k < shownBy.backX.length; k += stride) {
      const at = [shownBy.backX[k], shownBy.backY[k]];
      if (!Number.isFinite(at[0]) || !Number.isFinite(at[1])) continue;
      const sides = [shownBy.names ? 0 : beyond(at[0], across), beyond(at[1], up)];
      if (sides[0] || sides[1]) {
        far++;
        drawing.append(svg("polygon", { points: pointer(x(at[0] + aside(k)), y(at[1]), sides[0], -sides[1], 4.5).map((corner) => corner.join(",")).join(" "), class: "back" }));
      } else drawing.append(svg("circle", { cx: x(at[0] + aside(k)).toFixed(1), cy: y(at[1]).toFixed(1), r: 2.2, class: "back" }));
    }
    shownBy.near.forEach((other, k) => {
      if (Number.isFinite(other.x)) drawing.append(svg("circle", { cx: x(other.x + aside(k)).toFixed(1), cy: y(rows.label[other.rank]).toFixed(1), r: 4.5, class: "near" }));
    });
    drawing.append(svg("line", { x1: x(shownBy.x), x2: x(shownBy.x), y1: y(low), y2: y(high), class: "interval" }),
      svg("line", { x1: x(shownBy.x) - 7, x2: x(shownBy.x) + 7, y1: y(rows.expected[rank]), y2: y(rows.expected[rank]), class: "interval" }));
    const label = rows.label[rank], rim = far ? [plural(far, "trusted row")] : [];
    if (Number.isFinite(label)) {
      const side = beyond(label, up);
      if (side) {
        rim.unshift(`this label (${labelText(rank)})`);
        drawing.append(svg("polygon", { points: pointer(x(shownBy.x), y(label), 0, -side, 9).map((corner) => corner.join(",")).join(" "), class: "this" }));
      } else drawing.append(svg("circle", { cx: x(shownBy.x).toFixed(1), cy: y(label).toFixed(1), r: 5.5, class: "this" }));
    }
    drawing.setAttribute("aria-label", `Row ${shownId(rank)}: label ${labelText(rank)}, expected ${show(rows.expected[rank])}, against ${shownBy.name}. The table of the most similar trusted rows holds the same.`);
    return [make("figure", { class: "row-picture" }, make("figcaption", { dir: "auto" }, caption(rank, shownBy, rim)), drawing,
      make("p", { class: "legend" }, make("span", { class: "dot suspect" }), ` this label `, make("span", { class: "dot ring" }), " most similar trusted rows ", make("span", { class: "dot trusted" }), " other trusted rows ",
        make("span", { class: "bar" }), " expected"))];
  };
  const widened = ([low, high], values) => {
    const pad = 0.04 * (high - low);
    return [Math.min(low, ...values.map((value) => value - pad)), Math.max(high, ...values.map((value) => value + pad))];
  };
  return { draw };
};
