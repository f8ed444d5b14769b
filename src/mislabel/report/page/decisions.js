"use strict";
/* What a decision is, and when one that was made before still holds.

   Decisions go by the position of a row in its file, which no later audit of that file changes. One is {action, value, note, label,
   suggested, audit, row, together}: with what the row showed when it was decided, and in which audit. Those decided together with
   others, or by a note alone, say nothing of whether anybody looked at this row. */
const decisionRules = ({ audit, size, labelAt, decidedBefore }) => {
  const ACTIONS = ["accept", "edit", "keep", "drop"];

  const same = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
  const numberOrNull = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
  const checked = (position, found) => {
    if (!Number.isInteger(position) || position < 0 || position >= size) return null;
    if (typeof found !== "object" || found === null || !ACTIONS.includes(found.action)) return null;
    const value = found.action === "accept" || found.action === "edit" ? numberOrNull(found.value) : null;
    if (value === null && (found.action === "accept" || found.action === "edit")) return null;
    const text = (name) => (typeof found[name] === "string" ? found[name] : "");
    const decision = { action: found.action, value, note: text("note"), label: numberOrNull(found.label), suggested: numberOrNull(found.suggested), audit: text("audit") };
    return { ...decision, ...(typeof found.row === "string" ? { row: found.row } : {}), ...(found.together === true ? { together: true } : {}) };
  };
  /* Whether a decision of another audit was made about the label that stands at its position now. */
  const fits = (position, decision) => {
    const label = labelAt(position);
    if (decision.audit === audit || label === undefined) return true;
    if (label === null || decision.label === null) return label === decision.label;
    return Math.abs(label - decision.label) <= 1e-12 * Math.abs(label);
  };
  /* Decisions by position, and those entries that are none about this file. */
  const sorted = (entries) => {
    const found = new Map(), misfits = [];
    for (const entry of entries) {
      const [position, stored] = Array.isArray(entry) ? entry : [];
      const decision = checked(position, stored);
      if (decision && fits(position, decision)) found.set(position, decision);
      else misfits.push(entry);
    }
    return { found, misfits };
  };
  /* Entries of a file that are on this page anyway: decided in an earlier audit, and passed to this one. */
  const isEarlier = (item) => item?.earlier === true && decidedBefore.has(item.position);
  return { audit, same, checked, fits, sorted, isEarlier };
};

/* Decisions as the browser keeps them, stored as {format: 2, audit, saved, decisions: [[position, decision]]}. */
const browserStore = ({ key, rules }) => {
  const FORMAT = 2;
  const { audit, same, checked } = rules;
  const decisions = new Map();
  let base = new Map(), baseText = null; // what this page last read from the store or wrote to it
  let strangers = []; // stored by a tab that shows another reading of the file
  let works = true, readable = true;

  /* {found, misfits, older} of a stored text; null where it is no state at all. */
  const parsed = (text) => {
    if (text === null) return { found: new Map(), misfits: [], older: 0 };
    let content;
    try {
      content = JSON.parse(text);
    } catch (error) {
      return null;
    }
    if (Array.isArray(content)) return { found: new Map(), misfits: [], older: content.length };
    if (content?.format !== FORMAT || !Array.isArray(content.decisions)) return null;
    const named = content.decisions.map((entry) => (Array.isArray(entry) && entry[1] && typeof entry[1] === "object" ? [entry[0], { audit: content.audit, ...entry[1] }] : entry));
    const { found, misfits } = rules.sorted(named);
    const misfit = new Set(misfits);
    return { found, misfits: content.decisions.filter((_, k) => misfit.has(named[k])), older: 0 };
  };
  const written = () => JSON.stringify({
    format: FORMAT, audit, saved: new Date().toISOString(), decisions: [...decisions, ...strangers].sort(([one], [other]) => one - other),
  });
  const write = () => {
    try {
      const text = written();
      localStorage.setItem(key, text);
      baseText = text;
      base = new Map(decisions);
      works = true;
    } catch (error) {
      works = false;
    }
  };
  const setAside = (text) => localStorage.setItem(`${key}:set aside:${new Date().toISOString()}`, text);

  /* Read what is kept; returns how many decisions could not be used, by the reason. They stay in the browser under another key. */
  const load = () => {
    const result = { older: 0, misfits: 0, unreadable: false };
    try {
      const text = localStorage.getItem(key);
      const state = parsed(text);
      if (state === null || state.older) {
        setAside(text);
        localStorage.removeItem(key);
        return { ...result, older: state ? state.older : 0, unreadable: state === null };
      }
      for (const [position, decision] of state.found) decisions.set(position, decision);
      base = new Map(decisions);
      baseText = text;
      if (state.misfits.length) {
        setAside(JSON.stringify({ format: FORMAT, audit, decisions: state.misfits }));
        write();
      }
      return { ...result, misfits: state.misfits.length };
    } catch (error) {
      readable = works = false;
      return result;
    }
  };

  /* Take over what another tab stored meanwhile; returns the positions it decided otherwise. */
  const merge = () => {
    const text = localStorage.getItem(key);
    // A store that was emptied says nothing about the decisions on this page.
    if (text === null || text === baseText) return [];
    const state = parsed(text);
    if (state === null || state.older) {
      setAside(text);
      return [];
    }
    strangers = state.misfits.filter((entry) => Array.isArray(entry) && !decisions.has(entry[0]));
    const changed = [];
    for (const position of new Set([...state.found.keys(), ...base.keys()])) {
      const theirs = state.found.get(position);
      if (same(theirs, base.get(position)) || same(theirs, decisions.get(position))) continue;
      if (theirs) decisions.set(position, theirs);
      else decisions.delete(position);
      changed.push(position);
    }
    base = state.found;
    baseText = text;
    return changed;
  };
  const sync = () => {
    try {
      const changed = merge();
      readable = true;
      return changed;
    } catch (error) {
      readable = works = false;
      return [];
    }
  };
  /* Decide, or undecide with null; only these positions are touched, so that other tabs lose nothing. */
  const change = (changes) => {
    const elsewhere = sync();
    for (const [position, decision] of changes) {
      if (decision === null) decisions.delete(position);
      else decisions.set(position, checked(position, decision));
    }
    // What could neither be read nor set aside is not overwritten.
    if (readable) write();
    return elsewhere;
  };
  /* Settings of the page, by name; null where nothing is kept. */
  const setting = (name, value) => {
    try {
      if (value !== undefined) localStorage.setItem(`mislabel setting:${name}`, JSON.stringify(value));
      return JSON.parse(localStorage.getItem(`mislabel setting:${name}`));
    } catch (error) {
      return null;
    }
  };
  /* Call whenever another tab stored something. */
  const watch = (changed) => window.addEventListener("storage", (event) => { if (event.key === key) changed(sync()); });

  const problem = () => (works ? "" : "This browser does not keep the decisions of this page: export them before you close it.");
  return { decisions, load, sync, change, same, setting, watch, problem };
};
