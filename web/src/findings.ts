// What was found in the run and why: a card for each finding. Its seconds are tinted in the charts.

import { zoomTo } from "./charts";
import type { Finding, Stability } from "./data";
import { element, section } from "./dom";
import { clock } from "./units";
import { say, tell } from "./words";

/** More of them are in the JSON and in `throng why`. */
const SHOWN_MAX = 12;

const span = (it: { from_s: number; to_s: number }): string => `${clock(it.from_s)} – ${clock(it.to_s)}`;

/** A button that shows this part of the time in the charts. */
export function toCharts(label: string, from_s: number, to_s: number): HTMLElement {
  const show = element("button", { type: "button", title: say("Show in the charts") }, label);
  show.addEventListener("click", () => {
    zoomTo(from_s, to_s);
    document.getElementById("time")?.scrollIntoView({ behavior: "smooth" });
  });
  return show;
}

function card(it: Finding): HTMLElement {
  const evidence = it.evidence.map((one) => element("li", {}, tell(one.text)));
  const excluded = it.excluded.map((one) => element("li", {}, say("ruled out: {} ({})", tell(one.cause), tell(one.how))));
  return element(
    "article",
    { class: `finding ${it.level}` },
    element("h3", {}, tell(it.title)),
    element("p", { class: "quiet" }, element("b", {}, say(it.level)), ` · ${it.code} · ${span(it.when)}`),
    element("p", {}, tell(it.text)),
    element("details", {}, element("summary", {}, say("Evidence")), element("ul", {}, ...evidence, ...excluded)),
    element("p", {}, `→ ${tell(it.next)}`),
    toCharts(say("Show in the charts"), it.when.from_s, it.when.to_s),
  );
}

/** Null if nothing was found, or the record is too old to tell. */
export function findings(found: Finding[] | null | undefined): HTMLElement | null {
  if (!found || found.length === 0) return null;
  return section("findings", say("Findings"), element("div", { class: "found" }, ...found.slice(0, SHOWN_MAX).map(card)));
}

const WORDS = { stable: "stable", unstable: "unstable", "too-short": "too short to tell" };

/** Null if the load was not long. */
export function stability(found: Stability | null | undefined): HTMLElement | null {
  if (!found) return null;
  const level = { stable: "good", unstable: "certain", "too-short": "hint" }[found.verdict];
  const rows = found.measures.map((it) => element("li", {}, it.trend === "grows" ? element("b", {}, tell(it.text)) : tell(it.text)));
  const card = element("article", { class: `finding ${level}` }, element("h3", {}, say(WORDS[found.verdict])), element("ul", {}, ...rows));
  return section("stability", say("Stability"), element("div", { class: "found" }, card));
}

/** What gave way at the border of a search. */
export function gaveWay(all: { text: string }[] | null | undefined): HTMLElement | null {
  if (!all || all.length === 0) return null;
  return section("gave-way", say("Bottlenecks"), element("ul", {}, ...all.map((it) => element("li", {}, tell(it.text)))));
}
