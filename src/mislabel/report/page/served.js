"use strict";
/* Decisions as the local server keeps them: in a file beside the page, saved after every change.

   A save names the revision it was made from and is refused if another tab, or another program, changed the file since: then
   their decisions are taken over first. Where both decided about the same row, what was decided here stays, and the page says so. */
const servedStore = ({ rules, textOf, told }) => {
  const ADDRESS = "decisions", PAUSE = 3000;
  const { same, checked } = rules;
  const decisions = new Map(), settings = new Map();
  let base = new Map(), revision = null; // what the file held when this page last read or wrote it
  let strangers = []; // entries of the file that are about no row here
  let trouble = "", saving = false, unsaved = false;

  /* Entries of the file in the form of the page. Exports name no audit, but the label that they are about. */
  const entryOf = (item) => {
    if (typeof item !== "object" || item === null) return item;
    const isOurs = item.label === undefined || rules.fits(item.position, { audit: "", label: item.label });
    return [item.position, { ...item, audit: item.audit ?? (isOurs ? rules.audit : ""), together: item.reviewed !== true }];
  };
  const taken = (answer) => {
    revision = answer.revision;
    const entries = (answer.content?.decisions ?? []).filter((item) => !rules.isEarlier(item));
    const state = rules.sorted(entries.map(entryOf));
    const misfit = new Set(state.misfits.map((entry) => (Array.isArray(entry) ? entry[0] : null)));
    strangers = entries.filter((item) => misfit.has(item?.position ?? null));
    for (const [name, value] of Object.entries(answer.content?.settings ?? {})) if (!settings.has(name)) settings.set(name, value);
    return state.found;
  };
  const ask = async (options = {}) => {
    const response = await fetch(ADDRESS, { cache: "no-store", ...options });
    const answer = response.headers.get("Content-Type") === "application/json" ? await response.json() : {};
    return { status: response.status, answer };
  };
  const lost = () => "The local server does not answer, so decisions are not saved any more. Export them before you close this page, then start mislabel review again.";

  /* What is in the file; returns how many decisions could not be used. */
  const load = async () => {
    const result = { older: 0, misfits: 0, unreadable: false };
    try {
      const { status, answer } = await ask();
      if (status !== 200) throw new Error(String(status));
      for (const [position, decision] of taken(answer)) decisions.set(position, decision);
      base = new Map(decisions);
      return { ...result, misfits: strangers.length, problem: answer.problem };
    } catch (error) {
      trouble = lost();
      return result;
    }
  };

  /* Take over what the file holds by now; tells the positions that were decided elsewhere, and those decided in both places. */
  const merge = async () => {
    const { status, answer } = await ask();
    if (status !== 200) throw new Error(String(status));
    if (answer.revision === revision) return;
    const theirs = taken(answer), elsewhere = [], both = [];
    for (const position of new Set([...theirs.keys(), ...base.keys()])) {
      const their = theirs.get(position), our = decisions.get(position);
      if (same(their, base.get(position)) || same(their, our)) continue;
      if (!same(our, base.get(position))) { both.push(position); continue; }
      if (their) decisions.set(position, their);
      else decisions.delete(position);
      elsewhere.push(position);
    }
    base = theirs;
    told({ elsewhere, both });
  };
  const saved = async () => {
    const sent = new Map(decisions), now = revision;
    const { status, answer } = await ask({
      method: "PUT", body: textOf({ strangers: strangers.filter((item) => !decisions.has(item.position)), settings: Object.fromEntries(settings) }), headers: { "Content-Type": "application/json", "If-Match": now },
    });
    if (status === 409) { await merge(); return false; }
    if (status !== 200) throw new Error(answer.problem ?? lost());
    revision = answer.revision;
    base = sent;
    return true;
  };
  const save = async () => {
    unsaved = true;
    if (saving || revision === null) return;
    saving = true;
    told({});
    try {
      while (unsaved) {
        unsaved = false;
        if (!await saved()) unsaved = true;
      }
      trouble = "";
    } catch (error) {
      unsaved = true;
      trouble = error instanceof TypeError ? lost() : error.message;
      setTimeout(() => { if (unsaved && !saving) save(); }, PAUSE);
    }
    saving = false;
    told({});
  };

  const change = (changes) => {
    for (const [position, decision] of changes) {
      if (decision === null) decisions.delete(position);
      else decisions.set(position, checked(position, decision));
    }
    save();
    return [];
  };
  const setting = (name, value) => {
    if (value !== undefined && value !== settings.get(name)) { settings.set(name, value); save(); }
    return settings.get(name) ?? null;
  };
  /* Look at the file whenever somebody comes back to this tab. */
  const watch = () => {
    const look = async () => {
      if (document.hidden || saving || unsaved || revision === null) return;
      try {
        await merge();
        trouble = "";
      } catch (error) {
        trouble = lost();
      }
      told({});
    };
    window.addEventListener("focus", look);
    document.addEventListener("visibilitychange", look);
    window.addEventListener("beforeunload", (event) => { if (unsaved || saving) event.preventDefault(); });
  };
  const status = () => (trouble ? "Not saved." : unsaved || saving ? "Saving …" : "All decisions are saved.");
  return { decisions, load, sync: () => [], change, same, setting, watch, status, problem: () => trouble };
};
