"use strict";
/* How many of the suspects are right labels at most, from verdicts on the first of them in a random order: what
   decisions/certificates.py computes, with the same numbers. Suspects go by their place among them, the most suspicious first. */
const reviewCertificate = ({ order, confidence, expected }) => {
  const FOR_ALL = 0.5, LEAST_DEPTH = 8;
  const UNKNOWN = 0, RIGHT = 1, WRONG = 2;
  const count = order.length;
  const known = new Uint8Array(count);
  let drawn = 0, found = 0, verdicts = 0, limits = [];

  /* Logarithms of factorials, and of w (w + 1) ... (w + k - 1) for the prior's weight w. */
  const weight = (1 - expected) / expected;
  const factorial = new Float64Array(count + 2), rising = new Float64Array(count + 2);
  for (let k = 1; k < count + 2; k++) {
    factorial[k] = factorial[k - 1] + Math.log(k);
    rising[k] = rising[k - 1] + Math.log(weight + k - 1);
  }
  const choose = (all, some) => factorial[all] - factorial[some] - factorial[all - some];
  const hypergeometric = (total, right, drawn, found) =>
    (right < found || total - right < drawn - found ? -Infinity : choose(right, found) + choose(total - right, drawn - found) - choose(total, drawn));

  /* The likelihood has one peak: the bound is where it falls below the mean likelihood, times alpha, on the far side. */
  const mostRight = (total, drawn, found, alpha) => {
    const evidence = choose(drawn, found) + factorial[found] + rising[drawn - found] - rising[drawn + 1] + Math.log(weight);
    const limit = evidence + Math.log(alpha);
    let low = total, high = total - (drawn - found) + 1;
    if (drawn) low = Math.min(Math.floor((found * (total + 1)) / drawn), high - 1);
    else return total;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (hypergeometric(total, middle, drawn, found) > limit) low = middle;
      else high = middle;
    }
    return low;
  };
  const depths = [];
  for (let depth = count; depth && (depth === count || depth >= LEAST_DEPTH); depth = Math.floor(depth / 2)) depths.push(depth);
  const alphaOf = (number) => (1 - confidence) * (depths.length > 1 ? (number ? (1 - FOR_ALL) / (depths.length - 1) : FOR_ALL) : 1);

  /* Take over all verdicts: true for a right label, false for a wrong one, null for none. */
  const update = (verdictAt) => {
    verdicts = 0;
    for (let place = 0; place < count; place++) {
      const verdict = verdictAt(place);
      known[place] = verdict === null ? UNKNOWN : verdict ? RIGHT : WRONG;
      if (verdict !== null) verdicts++;
    }
    const inside = depths.map(() => 0), right = depths.map(() => 0);
    for (drawn = 0, found = 0; drawn < count && known[order[drawn]] !== UNKNOWN; drawn++) {
      const place = order[drawn], isRight = known[place] === RIGHT ? 1 : 0;
      found += isRight;
      for (let k = 0; k < depths.length && place < depths[k]; k++) { inside[k]++; right[k] += isRight; }
    }
    limits = depths.map((depth, k) => mostRight(depth, inside[k], right[k], alphaOf(k)));
  };

  /* For some suspects, given as marks by place, or for all of them. */
  const bound = (marks = null) => {
    let size = 0, right = 0, open = 0; // open: not known to be wrong
    const outside = new Float64Array(depths.length), beyond = new Float64Array(depths.length);
    for (let place = 0; place < count; place++) {
      const inside = !marks || marks[place], state = known[place];
      if (inside) {
        size++;
        if (state === RIGHT) right++;
        if (state !== WRONG) {
          open++;
          // Depths become smaller.
          for (let k = depths.length - 1; k >= 0 && place >= depths[k]; k--) beyond[k]++;
        }
      } else if (state === RIGHT) for (let k = 0; k < depths.length && place < depths[k]; k++) outside[k]++;
    }
    let most = open;
    limits.forEach((limit, k) => { most = Math.min(most, limit - outside[k] + beyond[k]); });
    return { right: Math.max(most, right), size };
  };

  const cut = (share) => {
    const right = new Int32Array(count + 1), open = new Int32Array(count + 1);
    for (let k = 0; k < count; k++) {
      right[k + 1] = right[k] + (known[k] === RIGHT ? 1 : 0);
      open[k + 1] = open[k] + (known[k] === WRONG ? 0 : 1);
    }
    for (let size = count; size > 0; size--) {
      let most = open[size];
      limits.forEach((limit, k) => {
        const depth = depths[k];
        most = Math.min(most, limit - Math.max(right[depth] - right[size], 0) + Math.max(open[size] - open[depth], 0));
      });
      if (Math.max(most, right[size]) <= share * size) return size;
    }
    return 0;
  };

  const moreToHalve = () => {
    const now = bound().right, most = count - drawn;
    if (!now || most <= 0) return null;
    const rate = drawn ? found / drawn : expected;
    const halves = (more) => mostRight(count, drawn + more, Math.min(found + Math.floor(rate * more + 0.5), drawn + more), alphaOf(0)) <= now / 2;
    if (!halves(most)) return null;
    let few = 0, enough = 1;
    while (!halves(enough)) { few = enough; enough = Math.min(2 * enough, most); }
    while (enough - few > 1) {
      const middle = Math.floor((few + enough) / 2);
      if (halves(middle)) enough = middle;
      else few = middle;
    }
    return enough;
  };

  update(() => null);
  return {
    count, update, bound, cut, moreToHalve,
    drawn: () => drawn, right: () => found, verdicts: () => verdicts, next: () => (drawn < count ? order[drawn] : null),
  };
};

/* The section of the page: what is certain so far, and the way through the random sample. */
const certificatePanel = ({ content, size, unpack, decisionOf, open }) => {
  const given = content.certificate;
  if (!given) return null;
  const drawn = unpack(given.order, Int32Array); // ranks, in random order
  const rankAt = Int32Array.from(drawn).sort();
  const placeOf = new Int32Array(size).fill(-1);
  rankAt.forEach((rank, place) => { placeOf[rank] = place; });
  const turnOf = new Int32Array(drawn.length);
  drawn.forEach((rank, turn) => { turnOf[placeOf[rank]] = turn; });
  const certificate = reviewCertificate({ order: Int32Array.from(drawn, (rank) => placeOf[rank]), confidence: given.confidence, expected: given.expected });

  const percent = (share) => `${Number((100 * share).toPrecision(3))} %`;
  const total = plural(certificate.count, "suspect");
  const isVerdict = (decision) => Boolean(decision) && !decision.together;
  let changes = 0, seen = null, boundLine = "", lines = [];

  const promiseLines = () => {
    if (given.promised === null) return [];
    const cut = certificate.cut(given.promised), promised = `The promised ${percent(given.promised)} is`;
    if (cut === certificate.count) return [`${promised} certain.`];
    if (!cut) return [`${promised} not certain yet, not even for the most suspicious.`];
    return [`${promised} certain so far for the ${cut === 1 ? "most suspicious one" : `${cut.toLocaleString("en")} most suspicious`} only.`];
  };
  /* The sentences of the command line. */
  const sentences = (together) => {
    const reviewed = certificate.drawn(), right = certificate.right(), { right: most } = certificate.bound();
    const found = [reviewed
      ? `${reviewed.toLocaleString("en")} of ${total} were reviewed as a random sample: ${right.toLocaleString("en")} of them ${right === 1 ? "is a right label" : "are right labels"}.`
      : `None of the random sample has been reviewed yet: all of ${total} may be right labels.`];
    boundLine = reviewed ? `With ${percent(given.confidence)} confidence at most ${most.toLocaleString("en")} of ${total} (${percent(most / certificate.count)}) are right labels.` : "";
    if (reviewed) found.push(boundLine, ...promiseLines());
    if (most && reviewed < certificate.count) {
      const more = certificate.moreToHalve();
      if (more === null) found.push("No further verdicts can halve that.");
      else found.push(reviewed ? `About ${plural(more, "more verdict")} like these would halve that.` : `About ${plural(more, "verdict")} would halve that, if the labels are as wrong as they look.`);
    }
    const others = certificate.verdicts() - reviewed;
    if (others) found.push(`${plural(others, "verdict")} beside the random sample say nothing of other rows.`);
    if (together) found.push(`${plural(together, "decision")} on rows that nobody looked at one by one do not count.`);
    return found;
  };

  const next = () => { const place = certificate.next(); return place === null ? null : rankAt[place]; };
  const goOn = () => { if (next() !== null) open(next()); };
  const onward = () => (next() === null ? ["All suspects are reviewed"] : [certificate.drawn() ? "Next of the random sample " : "Start with the random sample ", make("kbd", {}, "S")]);
  $("sample-next").addEventListener("click", goOn);

  /* After decisions changed. */
  const draw = () => {
    let together = 0;
    certificate.update((place) => {
      const decision = decisionOf(rankAt[place]);
      if (decision && !isVerdict(decision)) together++;
      return isVerdict(decision) ? decision.action === "keep" : null;
    });
    changes++;
    lines = sentences(together);
    const first = certificate.drawn() ? 1 : 0;
    $("certificate-words").replaceChildren(...lines.map((line, k) => make("p", { class: k === first ? "bound" : "muted" }, line)));
    $("sample-next").replaceChildren(...onward());
    $("sample-next").disabled = next() === null;
    $("certificate-section").hidden = $("sample-key").hidden = false;
  };
  /* Of the rows in the table; they are counted only where they, or decisions, have changed. */
  const drawShown = (shown, name) => {
    const now = `${changes}\n${name}`;
    if (now === seen) return;
    seen = now;
    const marks = new Uint8Array(certificate.count);
    for (const rank of shown) if (placeOf[rank] >= 0) marks[placeOf[rank]] = 1;
    const { right, size: inside } = certificate.bound(marks);
    const told = certificate.drawn() && inside
      ? `Of the ${plural(inside, "suspect")} in this table at most ${right.toLocaleString("en")} (${percent(right / inside)}) ${right === 1 ? "is a right label" : "are right labels"}.` : "";
    $("certificate-shown").textContent = told;
    $("certificate-shown").hidden = !told;
  };
  /* In an opened row: which one of the sample it is, what is certain now, and the way on. */
  const rowLine = (rank) => {
    const turn = placeOf[rank] < 0 ? -1 : turnOf[placeOf[rank]];
    if (turn < 0 || turn > certificate.drawn()) return [];
    return [make("div", { class: "sample-line" }, make("span", {}, `Number ${(turn + 1).toLocaleString("en")} of the random sample. ${boundLine}`),
      ...(rank === next() ? [make("span", { class: "muted" }, "Keep the label if it is right.")] : [make("button", { type: "button", id: "sample-on", disabled: next() === null, onclick: goOn }, ...onward())]))];
  };
  return { draw, drawShown, rowLine, goOn, next, boundLine: () => boundLine };
};
