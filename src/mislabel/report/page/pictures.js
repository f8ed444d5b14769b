"use strict";
/* The pictures of the page: label against expected, histogram of z, calibration, noise by column. */
const auditPictures = ({ data, decisionOf, current, pick }) => {
  const { content, rows, size, numbers: { show, fixed } } = data;
  const { around, ticks, inside, beyond, pointer } = axes;
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const updateColors = () => { color.trusted = color("--trusted"); color.suspect = color("--suspect"); color.decided = color("--decided"); };
  const MOST_MEDIANS = 4;
  let place = null;
  const range = around(rows.label, rows.expected);

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
    const [low, high] = range;
    const left = 60, right = 12, top = 12, bottom = 40;
    const x = (value) => left + ((inside(value, range) - low) / (high - low)) * (box.width - left - right);
    const y = (value) => box.height - bottom - ((inside(value, range) - low) / (high - low)) * (box.height - top - bottom);
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = color("--muted");
    pen.strokeStyle = color("--line");
    let free = -Infinity;
    for (const tick of ticks(range)) {
      const text = show(tick, 6);
      pen.beginPath(); pen.moveTo(left, y(tick)); pen.lineTo(box.width - right, y(tick)); pen.stroke();
      pen.textAlign = "right"; pen.fillText(text, left - 5, y(tick) + 4);
      // Long numbers leave out every other one.
      const half = pen.measureText(text).width / 2;
      if (x(tick) - half < free || x(tick) + half > box.width) continue;
      pen.textAlign = "center"; pen.fillText(text, x(tick), box.height - bottom + 16);
      free = x(tick) + half + 6;
    }
    pen.textAlign = "center";
    pen.fillText("expected", (left + box.width - right) / 2, box.height - 6);
    pen.save(); pen.translate(11, (box.height - bottom) / 2); pen.rotate(-Math.PI / 2); pen.fillText("label", 0, 0); pen.restore();
    pen.setLineDash([4, 4]);
    pen.beginPath(); pen.moveTo(x(low), y(low)); pen.lineTo(x(high), y(high)); pen.stroke();
    pen.setLineDash([]);
    let outside = 0;
    const dot = (rank, radius, fill) => {
      const label = rows.label[rank], expected = rows.expected[rank];
      if (!Number.isFinite(label) || !Number.isFinite(expected)) return;
      const right = beyond(expected, range), up = beyond(label, range);
      pen.fillStyle = fill;
      pen.beginPath();
      if (right || up) {
        outside++;
        for (const [a, b] of pointer(x(expected), y(label), right, -up, radius + 2.5)) pen.lineTo(a, b);
      } else pen.arc(x(expected), y(label), radius, 0, 7);
      pen.fill();
    };
    pen.globalAlpha = size > 5000 ? 0.25 : 0.6;
    const small = size > 20000 ? 1.2 : 2.2;
    for (let rank = size - 1; rank >= 0; rank--) if (!rows.suspect[rank] && !decisionOf(rank)) dot(rank, small, color.trusted);
    pen.globalAlpha = 0.9;
    for (let rank = size - 1; rank >= 0; rank--) if (rows.suspect[rank] || decisionOf(rank)) dot(rank, 4, decisionOf(rank) ? color.decided : color.suspect);
    const chosen = current();
    if (chosen >= 0 && Number.isFinite(rows.label[chosen])) {
      pen.globalAlpha = 1; pen.strokeStyle = color("--accent"); pen.lineWidth = 2;
      pen.beginPath(); pen.arc(x(rows.expected[chosen]), y(rows.label[chosen]), 9, 0, 7); pen.stroke();
    }
    pen.globalAlpha = 1;
    $("clipped").textContent = outside ? `The axes hold the bulk of the labels: ${outside === 1 ? "1 label beyond them is drawn as a triangle" : `${outside.toLocaleString("en")} labels beyond them are drawn as triangles`} at the rim.` : "";
    place = { x, y };
  };
  $("scatter").addEventListener("click", (event) => {
    const box = $("scatter").getBoundingClientRect();
    let best = -1, nearest = 15;
    for (let rank = 0; rank < size; rank++) {
      if (!Number.isFinite(rows.label[rank]) || (!rows.suspect[rank] && size > 20000)) continue;
      const distance = Math.hypot(place.x(rows.expected[rank]) - (event.clientX - box.left), place.y(rows.label[rank]) - (event.clientY - box.top)) - (rows.suspect[rank] ? 5 : 0);
      if (distance < nearest) { nearest = distance; best = rank; }
    }
    if (best >= 0) pick(best);
  });

  const drawHistogram = () => {
    const { edges, trusted, suspect, cut } = content.histogram;
    const width = 420, height = 240, left = 40, bottom = 34, top = 10;
    const most = Math.max(...trusted.map((count, k) => count + suspect[k]), 1);
    const x = (value) => left + ((value - edges[0]) / (edges[edges.length - 1] - edges[0])) * (width - left - 22);
    // The square root keeps single suspects visible beside thousands of trusted labels.
    const y = (count) => height - bottom - Math.sqrt(count / most) * (height - bottom - top);
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Histogram of z: ${plural(suspect.reduce((a, b) => a + b, 0), "suspect")}${cut === null ? "" : `, all with |z| of at least ${fixed(cut, 1)}`}.` });
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
    const found = suspect.reduce((a, b) => a + b, 0), rim = content.histogram.beyond;
    const told = cut === null ? "" : found === 1 ? ` The suspect has |z| of ${fixed(cut, 1)}.` : ` Suspects have |z| of at least ${fixed(cut, 1)}.`;
    const far = rim ? ` ${plural(rim, "label")} beyond ±6 ${rim === 1 ? "is" : "are"} in the outermost bars.` : "";
    $("histogram-caption").textContent = `How far labels are off, in standard deviations (z).${told}${far} Heights are on a square-root scale.`;
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
  const drawDetectable = () => {
    const { sizes, shares } = content.detectable;
    if (sizes.length < 2) { $("detectable").replaceChildren("No error of any plausible size would be noticed in most rows."); return; }
    const width = 420, height = 260, left = 44, bottom = 38;
    // A few rows that need far larger errors must not squash the rest.
    const middle = sizes[shares.findIndex((share) => share >= 0.5)] ?? sizes[sizes.length - 1];
    const most = Math.min(sizes[sizes.length - 1], MOST_MEDIANS * middle) || 1, last = sizes.findLastIndex((value) => value <= most);
    const x = (value) => left + (inside(value, [0, most]) / most) * (width - left - 24), y = (share) => height - bottom - share * (height - bottom - 10);
    const steps = [`${x(0)},${y(0)}`];
    sizes.slice(0, last + 1).forEach((value, k) => steps.push(`${x(value).toFixed(1)},${y(k ? shares[k - 1] : 0).toFixed(1)}`, `${x(value).toFixed(1)},${y(shares[k]).toFixed(1)}`));
    steps.push(`${x(most)},${y(shares[last]).toFixed(1)}`);
    const half = sizes[shares.findIndex((share) => share >= 0.5)];
    const told = half === undefined ? "In less than half of the rows would any error of a plausible size be noticed." : `An error of ${show(half, 2)} would probably be noticed in half of the rows.`;
    const rest = Math.round(100 * (1 - shares[last]));
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": told },
      svg("polyline", { points: steps.join(" "), fill: "none", stroke: "var(--accent)", "stroke-width": "2.5" }));
    for (const tick of ticks([0, most], 4)) drawing.append(svg("text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle" }, show(tick, 3)));
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) drawing.append(svg("text", { x: left - 5, y: y(tick) + 4, "text-anchor": "end" }, `${100 * tick} %`));
    drawing.append(svg("text", { x: x(most / 2), y: height - 4, "text-anchor": "middle" }, "size of the error, in the labels' unit"));
    $("detectable").replaceChildren(drawing);
    $("detectable-words").textContent = told + (rest ? ` ${rest} % of the rows need larger errors than the picture shows, or none would be noticed there.` : "");
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
          make("span", {}, `${bin.suspects.toLocaleString("en")} of ${bin.count.toLocaleString("en")}, |z| ${fixed(bin.z, 2)}`));
      }
      const told = entry.p < 1e-4 ? "a clear difference" : entry.p < 0.01 ? "probably a difference" : "no clear difference";
      return make("figure", {}, make("figcaption", { dir: "auto" }, make("strong", {}, entry.column), ` — ${told}`), bars);
    }));
  };

  return { drawScatter, drawHistogram, drawCalibration, drawDetectable, drawFeatures, updateColors };
};
