"use strict";
/* Axes that a few values far out do not squash: they end where the bulk does, and what lies beyond is drawn at the rim. */
const axes = (() => {
  const MOST = 20000, TAIL = 0.01, ROOM = 0.25;

  /* [low, high] that holds the bulk of some values, or all where that needs little more room. */
  const around = (...lists) => {
    const some = [];
    for (const values of lists) {
      const stride = Math.max(1, Math.floor(values.length / MOST));
      for (let i = 0; i < values.length; i += stride) if (Number.isFinite(values[i])) some.push(values[i]);
    }
    if (!some.length) return [0, 1];
    some.sort((a, b) => a - b);
    const last = some.length - 1, [least, low, high, most] = [0, TAIL, 1 - TAIL, 1].map((share) => some[Math.round(share * last)]);
    const bulk = high - low;
    const from = least < low - ROOM * bulk ? low - 0.1 * bulk : least, to = most > high + ROOM * bulk ? high + 0.1 * bulk : most;
    const pad = 0.04 * (to - from) || 0.04 * Math.abs(to) || 1;
    return [from - pad, to + pad];
  };
  const ticks = ([low, high], count = 5) => {
    const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
    const unit = [1, 2, 2.5, 5, 10].map((k) => k * power).find((value) => value >= raw * (1 - 1e-9));
    const found = [];
    for (let k = Math.ceil(low / unit); k * unit <= high && found.length <= 2 * count; k++) found.push(Number((k * unit).toPrecision(12)));
    return found;
  };
  const inside = (value, [low, high]) => Math.min(Math.max(value, low), high);
  /* -1 below, 1 above, 0 within. */
  const beyond = (value, [low, high]) => (value < low ? -1 : value > high ? 1 : 0);
  /* The corners of a small triangle at a place of the rim; it points to where the value is. */
  const pointer = (x, y, toX, toY, size) => {
    const length = Math.hypot(toX, toY) || 1, u = toX / length, v = toY / length;
    return [[x + size * u, y + size * v], [x - size * (u + v), y - size * (v - u)], [x - size * (u - v), y - size * (v + u)]];
  };
  return { around, ticks, inside, beyond, pointer };
})();
