"use strict";
/* Decisions as the browser keeps them: by the position of a row in its file, which no later audit of that file changes.

   Stored as {format: 2, audit, saved, decisions: [[position, decision]]}; a decision is {action, value, note, label, suggested,
   audit, row, together}: with what the row showed when it was decided, and in which audit. Those decided together with others,
   or by a note alone, say nothing of whether anybody looked at this row. */
const decisionStore = ({ key, audit, size, labelAt }) => {
  const FORMAT = 2;
  const ACTIONS = ["accept", "edit", "keep", "drop"];
  const decisions = new Map();
  let base = new Map(), baseText = null; // what this page last read from the store or wrote to it
  let strangers = []; // stored by a tab that shows another reading of the file
  let works = true, readable = true;

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

  /* {found, misfits, older} of a stored text; null where it is no state at all. */
  const parsed = (text) => {
    const state = { found: new Map(), misfits: [], older: 0 };
    if (text === null) return state;
    let content;
    try {
      content = JSON.parse(text);
    } catch (error) {
      return null;
    }
    if (Array.isArray(content)) return { ...state, older: content.length };
    if (content?.format !== FORMAT || !Array.isArray(content.decisions)) return null;
    for (const entry of content.decisions) {
      const [position, stored] = Array.isArray(entry) ? entry : [];
      const decision = checked(position, stored && typeof stored === "object" ? { audit: content.audit, ...stored } : stored);
      if (decision && fits(position, decision)) state.found.set(position, decision);
      else state.misfits.push(entry);
    }
    return state;
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

  return { decisions, load, sync, change, same, works: () => works };
};
