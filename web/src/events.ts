// Events of the scenario and marks: how each ended, what it changed, and the figures around it.

import type { Table } from "./data";
import { element, section } from "./dom";
import { toCharts } from "./findings";
import { told } from "./tables";
import { clock, count, duration } from "./units";
import { say, tell } from "./words";

/** More of them are in the JSON. */
const SHOWN_MAX = 20;
/** What the charts show before and after an event without figures around it. */
const AROUND_S = 10;

interface Stretch {
  from_s: number;
  to_s: number;
}

/** As in docs/json.md. */
export interface Happened {
  name: string;
  kind: string;
  status: string;
  at_ns: number | null;
  took_ns: number | null;
  detail: string;
  output: string;
  text: string | null;
  before: Stretch | null;
  during: Stretch | null;
  after: Stretch | null;
}

/** Words of the JSON, where the page shows others. */
const STATUSES: Record<string, string> = { "timed-out": "timed out", "not-reached": "did not happen" };
/** The color of a card, if the event is not done. */
const LEVELS: Record<string, string> = { done: "", failed: "certain", "timed-out": "certain" };

/** When the event was. A click shows it from the time that it is compared with until all was back. */
function time(it: Happened): HTMLElement | null {
  if (it.at_ns === null) return null;
  const [begun_s, ended_s] = [it.at_ns / 1e9, (it.at_ns + (it.took_ns ?? 0)) / 1e9];
  const to_s = it.during?.to_s ?? ended_s + AROUND_S;
  return toCharts(clock(begun_s), it.before?.from_s ?? begun_s - AROUND_S, to_s);
}

function card(it: Happened): HTMLElement {
  const took = it.took_ns !== null && it.kind !== "mark" && ` · ${duration(it.took_ns)}`;
  const status = element("b", {}, tell(STATUSES[it.status] ?? it.status));
  const begun = time(it);
  return element(
    "article",
    { class: `finding ${LEVELS[it.status] ?? "likely"}` },
    element("h3", {}, it.name),
    element("p", { class: "quiet" }, begun, begun && " · ", it.kind, " · ", status, took),
    it.detail !== "" && element("p", {}, tell(it.detail)),
    it.text !== null && element("p", {}, tell(it.text)),
    it.output !== "" && element("details", {}, element("summary", {}, say("Output")), element("pre", {}, it.output)),
  );
}

/** The figures before, in and after each event, and what they mean. */
function around(made: Table | undefined): (HTMLElement | null)[] {
  const explained = say("p50 and p99: medians of the values per second; during: until all values were back to normal, or the action ended");
  return [told(made, say("Around events")), made ? element("p", { class: "quiet" }, explained) : null];
}

/** Null if the run has no events and no marks. */
export function events(all: Happened[] | undefined, made: Table | undefined): HTMLElement | null {
  if (!all || all.length === 0) return null;
  const more = all.length - SHOWN_MAX;
  const left = more > 0 && element("p", { class: "quiet" }, say("… and {} more events: `throng report --json` lists all", count(more)));
  return section("events", say("Events"), element("div", { class: "found" }, ...all.slice(0, SHOWN_MAX).map(card)), left, ...around(made));
}
