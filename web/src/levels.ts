// Levels of the load: a table with a row for each step at each level, and response time over load.

import { panel } from "./capacity";
import type { Table, Times } from "./data";
import { element } from "./dom";
import { told } from "./tables";
import { duration } from "./units";
import { say } from "./words";

/** As in docs/json.md; what the page reads. */
export interface LoadLevel {
  change: string | null;
  rate_per_s: number;
  users_online: number;
  users_explained: number | null;
  target_cpu_s: number | null;
  target_connection_bytes: number | null;
  total: { latency: Times | null };
}

/** With fewer levels, there is no curve over the load. */
const DRAWN_MIN = 3;

/** The table, and what its figures mean. */
function rows(levels: LoadLevel[], made: Table | undefined): (HTMLElement | null)[] {
  const any = (name: "users_explained" | "target_cpu_s" | "target_connection_bytes") => levels.some((level) => level[name] != null);
  const notes = [
    say("cores: processors that the generator used, on average"),
    any("users_explained") && say("explained / users: attempts/s × (response time + pause), and users on average"),
    any("target_cpu_s") && say("target CPU: the target's CPU time per attempt"),
    any("target_connection_bytes") && say("per connection: growth of the target's memory, divided by open connections"),
  ];
  return [told(made, say("Levels")), ...notes.map((note) => (note ? element("p", { class: "quiet" }, note) : null))];
}

/** Response time over users, if their number differs between levels, or over starts per second. */
function drawn(levels: LoadLevel[]): HTMLElement | null {
  const timed = levels.filter((level) => level.total.latency !== null);
  if (timed.length < DRAWN_MIN) return null;
  const users = timed.map((level) => level.users_online);
  const byUsers = timed.some((level) => level.change?.startsWith("users ")) || (Math.max(...users) > 1.05 * Math.min(...users) && timed.every((level) => level.change === null));
  const points = timed.map((level) => {
    const load = byUsers ? level.users_online : level.rate_per_s;
    return { load, offered_per_s: load, verdict: "", level };
  });
  const found = { unit: byUsers ? "users" : "per_s", carries: null, low: null, high: null, fails_at: null, knee: { optimal: null, maximum: null, collapse: null }, levels: points };
  const over = say(byUsers ? "by users" : "by starts per second");
  const figure = (name: "p50" | "p99") => panel(found, { title: `${name} ${over}`, of: ({ level }) => level.total.latency?.[`${name}_ns`] ?? null, text: duration, logarithmic: true });
  return element("div", { class: "charts" }, figure("p50"), figure("p99"));
}

/** Nothing for a run whose load was the same throughout. */
export function levels(of: LoadLevel[] | undefined, made: Table | undefined): (HTMLElement | null)[] {
  return of && of.length > 1 ? [drawn(of), ...rows(of, made)] : [];
}
