"use strict";
/* What accepting all of a pattern will write, before it is written. */
const confirmPattern = ({ data, verdicts, pattern }) => {
  const { suggestionOf, shownId, labelText, expectedText, numbers: { full } } = data;
  const { decisionOf, verdictOf } = verdicts;
  const ranks = pattern.ranks.filter((rank) => Number.isFinite(suggestionOf(rank)));
  const decided = ranks.filter((rank) => decisionOf(rank)).length;
  const chosen = () => ranks.filter((rank) => $("confirm-replace").checked || !decisionOf(rank));
  const update = () => {
    const count = chosen().length;
    $("confirm-write").textContent = count === 1 ? "Write this value" : `Write these ${plural(count, "value")}`;
    $("confirm-write").disabled = !count;
    for (const line of $("confirm-rows").rows) line.classList.toggle("left-alone", line.dataset.decided === "yes" && !$("confirm-replace").checked);
  };
  $("confirm-title").textContent = `Accept ${plural(ranks.length, "correction")}?`;
  $("confirm-words").textContent = `${pattern.words}. Nothing is written before you say so; undo takes it back.`;
  $("confirm-rows").replaceChildren(...ranks.map((rank) => make("tr", { "data-decided": decisionOf(rank) ? "yes" : "no" },
    make("th", { scope: "row", dir: "auto" }, shownId(rank)), make("td", { class: "number" }, labelText(rank)),
    make("td", { class: "number" }, expectedText(rank)), make("td", { class: "number new" }, full(suggestionOf(rank))), make("td", {}, verdictOf(rank)))));
  $("confirm-decided").hidden = !decided;
  $("confirm-decided-words").textContent = `Replace ${plural(decided, "decision")} made before (else ${decided === 1 ? "it is" : "they are"} left alone)`;
  $("confirm-replace").checked = false;
  $("confirm-replace").onchange = update;
  $("confirm-write").onclick = () => {
    const now = chosen();
    $("confirm").close();
    verdicts.acceptAll(now);
  };
  update();
  $("confirm").showModal();
  $("confirm-title").focus();
};
