// Levels of the load: a table with a row for each step at each level, and response time over load.

import { panel } from "./capacity";
import type { Times } from "./data";
import { element, table, type Column } from "./dom";
import { bytes, count, duration } from "./units";
import { say } from "./words";

interface Step {
  name: string;
  count: number;
  failed: number;
  latency: Times | null;
}

/** As in docs/json.md. */
export interface LoadLevel {
  name: string;
  load: string | null;
  change: string | null;
  measured: boolean;
  lasted_ns: number;
  rate_per_s: number;
  users_online: number;
  opened_per_s: number;
  cores: number;
  users_mean: number | null;
  users_explained: number | null;
  target_cpu_s: number | null;
  target_memory_bytes: number | null;
  target_connection_bytes: number | null;
  total: Step;
  steps: Step[];
}

/** A row for all steps of a level, and one for each if there are several. */
interface Line {
  level: LoadLevel;
  step: Step | null;
}

/** With fewer levels, there is no curve over the load. */
const DRAWN_MIN = 3;

/** The phase, and the load if that was changed. */
function label(level: LoadLevel): string {
  const [what, value] = level.change?.split(" ") ?? [null, ""];
  const change = what === "rate" ? `${value}/s` : what === "users" ? `${count(Number(value))} ${say("users")}` : what === null ? "" : `× ${value}`;
  const phase = [level.load, level.name].filter((it) => it).join(" / ");
  return [phase, change].filter((it) => it !== "").join(", ") + (level.measured ? "" : ` (${say("not measured")})`);
}

/** Both sides of Little's law. */
const explained = (): Column<Line> => ({
  title: say("explained / users"),
  value: (line) => (line.step ? null : line.level.users_explained),
  text: ({ level, step }) => (step || level.users_explained == null || level.users_mean == null ? "" : `${count(level.users_explained)} / ${count(level.users_mean)}`),
});

/** The table, and what its figures mean. */
function rows(levels: LoadLevel[]): (HTMLElement | null)[] {
  const lines = levels.flatMap((level): Line[] => {
    const steps = level.steps.length > 1 ? level.steps : [];
    return [{ level, step: null }, ...steps.map((step) => ({ level, step }))];
  });
  const step = (line: Line) => line.step ?? line.level.total;
  const text = (title: string, of: (line: Line) => string): Column<Line> => ({ title: say(title), value: of, text: of, left: true });
  const number = (title: string, of: (line: Line) => number | null | undefined, shown: (value: number | null) => string = count): Column<Line> => ({
    title: say(title),
    value: (line) => of(line) ?? null,
    text: (line) => shown(of(line) ?? null),
  });
  const any = (name: "users_explained" | "target_cpu_s" | "target_memory_bytes" | "target_connection_bytes") => levels.some((level) => level[name] != null);
  const once = (of: (level: LoadLevel) => number | null) => (line: Line) => (line.step ? null : of(line.level));
  const cpu = (level: LoadLevel) => (level.target_cpu_s == null ? null : level.target_cpu_s * 1e9);
  const columns = [
    text("level", (line) => label(line.level)),
    text("step", (line) => line.step?.name ?? say("all")),
    number("duration", once((level) => level.lasted_ns), duration),
    number("count", (line) => step(line).count),
    number("failures", (line) => step(line).failed),
    number("p50", (line) => step(line).latency?.p50_ns, duration),
    number("p99", (line) => step(line).latency?.p99_ns, duration),
    number("connects/s", once((level) => level.opened_per_s)),
    number("users", once((level) => level.users_online)),
    ...(any("users_explained") ? [explained()] : []),
    number("cores", once((level) => level.cores), (cores) => (cores === null ? "" : cores.toFixed(2))),
    ...(any("target_cpu_s") ? [number("target CPU", once(cpu), duration)] : []),
    ...(any("target_memory_bytes") ? [number("target memory", once((level) => level.target_memory_bytes), bytes)] : []),
    ...(any("target_connection_bytes") ? [number("per connection", once((level) => level.target_connection_bytes), bytes)] : []),
  ];
  const notes = [
    say("cores: processors that the generator used, on average"),
    any("users_explained") && say("explained / users: attempts/s × (response time + pause), and users on average"),
    any("target_cpu_s") && say("target CPU: the target's CPU time per attempt"),
    any("target_connection_bytes") && say("per connection: growth of the target's memory, divided by open connections"),
  ];
  const told = notes.map((note) => (note ? element("p", { class: "quiet" }, note) : null));
  return [table<Line>(say("Levels"), columns, lines, say("Filter")), ...told];
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
export function levels(of: LoadLevel[] | undefined): (HTMLElement | null)[] {
  return of && of.length > 1 ? [drawn(of), ...rows(of)] : [];
}
