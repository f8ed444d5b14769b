"use strict";
/* Numbers in the file's own notation: what is shown can be typed, and what is typed is what gets written. */
const numberNotation = ({ decimal, thousands, decimals }) => {
  const MOST_DIGITS = 15;
  const SPACES = " \u00a0\u202f\u2009'\u2019";
  const foreign = decimal === "," ? "." : ",";

  /* Without the dust of binary arithmetic (3977.1800000000003); whole numbers keep all their digits. */
  const tidy = (value) => {
    const rounded = Number.isSafeInteger(value) ? value : Number(value.toPrecision(MOST_DIGITS));
    return Number.isFinite(rounded) ? rounded : value;
  };

  /* The shortest digits that read back as the value; an exponent where Python writes one too. */
  const parts = (value) => {
    const [mantissa, power] = Math.abs(value).toExponential().split("e");
    const digits = mantissa.replace(".", ""), exponent = Number(power);
    const sign = value < 0 ? "-" : "";
    if (exponent < -4 || exponent >= 16) {
      const size = String(Math.abs(exponent)).padStart(2, "0");
      return { sign, whole: digits[0], rest: digits.slice(1), power: `e${exponent < 0 ? "-" : "+"}${size}` };
    }
    if (exponent < 0) return { sign, whole: "0", rest: "0".repeat(-exponent - 1) + digits, power: "" };
    return { sign, whole: digits.slice(0, exponent + 1).padEnd(exponent + 1, "0"), rest: digits.slice(exponent + 1), power: "" };
  };
  const joined = ({ sign, whole, rest, power }, mark = thousands) =>
    sign + (mark && !power ? whole.replace(/\B(?=(\d{3})+$)/g, mark) : whole) + (rest ? decimal + rest : "") + power;

  /* The text of a cell: as exact as the value, with the thousands mark and the fixed number of decimals of its column. */
  const write = (value) => {
    const found = parts(value);
    if (!found.power && decimals !== null && decimals !== undefined) found.rest = found.rest.padEnd(decimals, "0");
    return joined(found);
  };
  /* As written, without dust; for values that were computed. */
  const full = (value) => (Number.isFinite(value) ? write(tidy(value)) : "missing");
  /* As typed by hand: no thousands marks, nothing padded. */
  const plain = (value) => joined(parts(value), "");
  /* Rounded, for what is an estimate anyway; with at least some decimals. */
  const show = (value, digits = 5, least = 0) => {
    if (!Number.isFinite(value)) return "missing";
    const short = Number(value.toPrecision(digits));
    const magnitude = short === 0 ? 0 : Math.floor(Math.log10(Math.abs(short)));
    if (magnitude < -4 || magnitude >= 7) return short.toExponential().replace(".", decimal);
    const found = parts(short);
    return joined({ ...found, rest: found.rest.padEnd(least, "0") });
  };
  const fixed = (value, digits) => (Math.abs(value) < 1e6 ? value.toFixed(digits).replace(".", decimal) : show(value, 2));

  const escaped = (marks) => marks.replace(/[.\]\\^-]/g, "\\$&");
  const patterns = (point, group) => ({
    plain: new RegExp(`^[+-]?(?:\\d+(?:${escaped(point)}\\d*)?|${escaped(point)}\\d+)(?:[eE][+-]?\\d+)?$`),
    // Groups of three after a first one that is not zero, all with the same mark.
    grouped: new RegExp(`^[+-]?[1-9]\\d{0,2}([${escaped(group + SPACES)}])\\d{3}(?:\\1\\d{3})*(?:${escaped(point)}\\d*)?$`),
  });
  const OWN = patterns(decimal, foreign), OTHER = patterns(foreign, decimal);
  const numberIn = (text, point, shapes) => {
    const found = shapes.grouped.exec(text);
    if (!found && !shapes.plain.test(text)) return undefined;
    return Number((found ? text.replaceAll(found[1], "") : text).replace(point, "."));
  };
  const EITHER = new RegExp(`^[+-]?[1-9]\\d{0,2}${escaped(foreign)}\\d{3}$`);

  /* {value} of a text, or {problem}: why it is no number here, and what to type instead. */
  const read = (text) => {
    const typed = text.trim().replace(/\u2212/g, "-");
    const quoted = `"${typed.length > 40 ? `${typed.slice(0, 39)}…` : typed}"`;
    if (!typed) return { problem: "Type a number first; nothing was changed." };
    const own = numberIn(typed, decimal, OWN), other = numberIn(typed, foreign, OTHER);
    // A mark that the column itself uses for thousands leaves no doubt.
    if (EITHER.test(typed) && foreign !== thousands) {
      return { problem: `${quoted} can be read as ${plain(own)} or as ${plain(other)}; nothing was changed: type ${plain(own)}, or ${plain(other)}.` };
    }
    const name = decimal === "," ? "comma" : "point";
    if (own === undefined) {
      const instead = Number.isFinite(other) ? `type ${plain(other)} if you mean that` : `type a number like ${plain(1234.5)}`;
      return { problem: `${quoted} is not a number with a decimal ${name}, as this file writes them; nothing was changed: ${instead}.` };
    }
    if (!Number.isFinite(own)) return { problem: `${quoted} is too large for a number; nothing was changed.` };
    if (own === 0 && /[1-9]/.test(typed.split(/[eE]/)[0])) return { problem: `${quoted} is too small to be told from zero; nothing was changed.` };
    return { value: own };
  };

  return { tidy, write, full, show, fixed, read };
};
