"use strict";
/* The words at the top and the end of the page: what was found, what it means, what to do with it. */
const drawOpening = ({ data, exported, showPattern, acceptPattern }) => {
  const { content, size, numbers: { fixed } } = data;
  /* A file name as a shell takes it for one word. */
  const word = (name) => {
    const local = name.startsWith("-") ? `./${name}` : name;
    return /^[\w.,+@%:=/-]+$/.test(local) ? local : `'${local.replace(/'/g, "'\\''")}'`;
  };
  const paragraphs = (lines) => lines.map((line) => make("p", { dir: "auto" }, line));
  const suspects = (count) => (count === 1 ? "1 suspect fits" : `${count.toLocaleString("en")} suspects fit`);

  document.title = `${content.label}: label audit`;
  $("version").textContent = content.version;
  $("title").textContent = `Are the values of “${content.label}” right?`;
  $("source").textContent = `${content.file.name}, ${plural(content.file.rows, "row")}`;
  const [found, ...rest] = content.words;
  $("words").replaceChildren(...paragraphs(found === undefined ? [] : [found]), ...(content.meaning ? [make("p", { id: "meaning", dir: "auto" }, content.meaning)] : []),
    ...paragraphs([...rest, content.patternLine]));
  $("trust").replaceChildren(...paragraphs(content.trust));
  $("kinds").replaceChildren(...content.kinds.flatMap(({ name, words }) => [make("dt", {}, name), make("dd", { dir: "auto" }, words)]));
  $("kinds").hidden = !content.kinds.length;

  $("kept").textContent = content.served
    ? `This page is served to this machine alone. Decisions are saved in ${content.served.path} as you make them.`
    : "Nothing on this page leaves it: decisions are kept by this browser until you export them.";
  const decisions = content.served ? word(content.served.path) : "decisions.json";
  $("command").textContent = `mislabel apply ${word(content.file.name)} ${decisions} -o ${word(`cleaned${exported.extension || ".csv"}`)}`;
  $("apply").hidden = content.file.apply !== null;
  if (content.file.apply !== null) notice("no-apply", content.file.apply);

  $("patterns-section").hidden = !content.patterns.length;
  $("patterns").replaceChildren(...content.patterns.map((pattern, k) => make("li", {},
    make("span", { dir: "auto" }, make("strong", {}, `${suspects(pattern.ranks.length)} ${pattern.words}`), ` (${pattern.certainty}; ${pattern.byAccident < 0.1 ? "almost none" : fixed(pattern.byAccident, 1)} expected by accident)`),
    make("span", { class: "do" },
      make("button", { type: "button", onclick: () => showPattern(k) }, "Show"), " ",
      make("button", { type: "button", class: "primary", onclick: () => acceptPattern(pattern) }, pattern.ranks.length === 1 ? "Accept it" : `Accept all ${pattern.ranks.length}`)))));

  const used = content.used.length ? `Used as ${content.used.length === 1 ? "feature" : "features"}: ${content.used.slice(0, 60).join(", ")}${content.used.length > 60 ? ", …" : ""}.` : "No column was used as a feature.";
  $("columns").replaceChildren(...paragraphs([used, ...content.leftOut.map((item) => `Left out: ${item.column} (${item.reason}).`)]));
  if (size < content.file.rows) $("columns").append(make("p", {}, `This page holds the ${plural(size, "row")} that ${size === 1 ? "looks" : "look"} most suspicious, out of ${plural(content.file.rows, "row")}; all of them are in audit.csv.${content.file.apply === null ? " The cleaned file is made by the command below." : ""}`));
  for (const item of content.notes) $("columns").append(make("p", { dir: "auto", class: "muted" }, `Note: ${item}`));
};
