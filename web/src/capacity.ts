// What a search for the highest load found: the answer, a chart over the load, and its levels.

import { element, section, table, type Column } from "./dom";
import { count, duration, short } from "./units";
import { say, tell } from "./words";

export interface Level {
  load: number;
  purpose: string;
  seconds: number;
  offered_per_s: number;
  served_per_s: number;
  strain: number | null;
  p50_s: number | null;
  p99_s: number | null;
  in_flight: number;
  in_flight_expected: number;
  verdict: string;
  by: string | null;
}

/** As in docs/json.md. */
export interface Capacity {
  sentence: string;
  unit: string;
  carries: number | null;
  low: number | null;
  high: number | null;
  basis: string;
  fails_at: number | null;
  knee: { optimal: [number, number] | null; maximum: [number, number] | null; collapse: number | null };
  levels: Level[];
}

/** What a chart shows of a level. The verdict is empty if it was not judged. */
interface Spot {
  load: number;
  offered_per_s: number;
  verdict: string;
  by?: string | null;
}

/** What a chart needs of a capacity. */
type Drawn<T> = Pick<Capacity, "unit" | "carries" | "low" | "high" | "fails_at" | "knee"> & { levels: T[] };

const [WIDTH, LEFT, RIGHT, HEIGHT] = [600, 64, 14, 230];
const [TOP, BOTTOM] = [32, 24];

function svg(name: string, attributes: Record<string, string | number>, ...children: (Node | string)[]): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/** A load with its unit. */
export const loadText = (found: { unit: string }, load: number): string => (found.unit === "users" ? `${count(load)} ${say("users")}` : `${count(load)}/s`);

const loadOf = (found: Drawn<Spot>, level: Spot): number => (found.unit === "users" ? level.load : level.offered_per_s);

/** The load axis starts at 0, so that the knee is seen as a part of the whole. */
function scale(found: Drawn<Spot>): { most: number; x: (load: number) => number } {
  const marks = [found.carries, found.low, found.high, found.fails_at].filter((it): it is number => it !== null);
  const most = Math.max(1, ...marks, ...found.levels.map((level) => loadOf(found, level))) * 1.02;
  return { most, x: (load) => LEFT + (Math.min(Math.max(load, 0), most) / most) * (WIDTH - LEFT - RIGHT) };
}

/** The zones: each from where the one before ends. A range is drawn as its middle. */
function zones(found: Drawn<Spot>, most: number): [string, number, number][] {
  const middle = (range: [number, number] | null) => (range ? (range[0] + range[1]) / 2 : null);
  const { optimal, maximum, collapse } = found.knee;
  const ends = [middle(optimal), middle(maximum) ?? collapse].filter((it): it is number => it !== null);
  if (ends.length === 0) return [];
  const last = collapse === null ? "beyond" : "collapse";
  const names = optimal ? ["light", "heavy", last] : ["heavy", last];
  return [...ends, most].map((end, at) => [names[at], at === 0 ? 0 : ends[at - 1], end]);
}

interface Figure<T> {
  title: string;
  of: (level: T) => number | null;
  text: (value: number) => string;
  logarithmic: boolean;
}

/** Round numbers between the ends: powers of ten, or a quarter of the range. */
function ticks(low: number, high: number, logarithmic: boolean): number[] {
  if (logarithmic) {
    const from = Math.floor(Math.log10(low));
    return Array.from({ length: Math.ceil(Math.log10(high)) - from + 1 }, (_, at) => 10 ** (from + at)).filter((it) => it >= low && it <= high);
  }
  const raw = (high - low) / 4;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((it) => it * unit).find((it) => it >= raw)!;
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, at) => at * step);
}

/** One figure of all levels over the load. */
export function panel<T extends Spot>(found: Drawn<T>, figure: Figure<T>): HTMLElement | null {
  const { most, x } = scale(found);
  const points = found.levels.map((level) => ({ level, at: loadOf(found, level), value: figure.of(level) }));
  const shown = points.filter((it): it is typeof it & { value: number } => it.value !== null && (!figure.logarithmic || it.value > 0));
  if (shown.length === 0) return null;
  const values = shown.map((it) => it.value);
  const [low, high] = figure.logarithmic ? [Math.min(...values) * 0.8, Math.max(...values) * 1.25] : [0, Math.max(...values) * 1.08 || 1];
  const part = (value: number) => (figure.logarithmic ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
  const y = (value: number) => HEIGHT - BOTTOM - part(value) * (HEIGHT - BOTTOM - TOP);
  const floor = HEIGHT - BOTTOM;
  const label = `${figure.title}: ${found.levels.length} ${say("levels")}`;
  const drawn = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, class: "capacity" });
  for (const [name, from, to] of zones(found, most)) {
    drawn.append(svg("rect", { class: `zone ${name}`, x: x(from), y: 4, width: Math.max(x(to) - x(from), 0), height: floor - 4 }));
    drawn.append(svg("text", { class: "name", x: (x(from) + x(to)) / 2, y: 18 }, say(ZONES[name])));
  }
  for (const value of ticks(low, high, figure.logarithmic)) {
    drawn.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }));
    drawn.append(svg("text", { class: "tick y", x: LEFT - 6, y: y(value) + 4 }, figure.text(value)));
  }
  for (const load of ticks(0, most, false)) drawn.append(svg("text", { class: "tick", x: x(load), y: HEIGHT - 6 }, short(load)));
  if (found.low !== null && found.high !== null) drawn.append(svg("rect", { class: "interval", x: x(found.low), y: 4, width: Math.max(x(found.high) - x(found.low), 1.5), height: floor - 4 }));
  for (const [name, load] of [["promise", found.carries], ["fails", found.fails_at]] as const) {
    if (load !== null) drawn.append(svg("line", { class: name, x1: x(load), x2: x(load), y1: 4, y2: floor }));
  }
  for (const { level, at, value } of shown) {
    const told = [loadText(found, level.load), figure.text(value), verdict(level)].filter((it) => it !== "").join(" · ");
    drawn.append(svg("circle", { class: level.verdict || "met", cx: x(at), cy: y(value), r: 4.5 }, svg("title", {}, told)));
  }
  return element("figure", {}, element("figcaption", {}, figure.title), drawn);
}

const ZONES: Record<string, string> = { light: "light load", heavy: "heavy load", beyond: "overload", collapse: "collapse" };
const PURPOSES: Record<string, string> = { beyond: "overload" };
const WORDS: Record<string, string> = { gone: "target lost", failing: "failures", offline: "not online", cpu: "CPU", ports: "source ports", users: "too few users" };

/** Whether a level met the thresholds, and if not, why. */
function verdict(level: Spot): string {
  if (level.verdict === "") return "";
  if (level.verdict === "met") return say("met");
  const by = level.by == null ? "" : say(WORDS[level.by] ?? level.by);
  return `${say(level.verdict === "not-met" ? "not met" : "generator bound")}: ${by}`;
}

function levels(found: Capacity): HTMLElement | null {
  const number = (title: string, of: (row: Level) => number | null, text = count): Column<Level> => ({ title: say(title), value: of, text: (row) => text(of(row)) });
  const time = (seconds: number | null) => duration(seconds === null ? null : seconds * 1e9);
  const columns: Column<Level>[] = [
    { title: say("load"), value: (row) => row.load, text: (row) => loadText(found, row.load), left: true },
    { title: say("purpose"), value: (row) => row.purpose, text: (row) => say(PURPOSES[row.purpose] ?? row.purpose), left: true },
    number("offered/s", (row) => row.offered_per_s),
    number("served/s", (row) => row.served_per_s),
    number("strain", (row) => row.strain, (strain) => (strain == null ? "–" : strain.toFixed(2))),
    number("p50", (row) => row.p50_s, (it) => time(it ?? null)),
    number("p99", (row) => row.p99_s, (it) => time(it ?? null)),
    number("in flight", (row) => row.in_flight),
    number("by Little's law", (row) => row.in_flight_expected),
    { title: say("verdict"), value: verdict, cell: (row) => element("span", { class: row.verdict === "met" ? "met" : "missed" }, verdict(row)), left: true },
  ];
  return table<Level>(say("Levels of the search"), columns, found.levels, say("Filter"));
}

/** Null if the run did not search for it. */
export function capacity(found: Capacity | null | undefined): HTMLElement | null {
  if (!found) return null;
  const range = found.basis === "interval" ? "95 % interval" : "met to not met";
  const legend: [string, string, boolean][] = [
    ["met", "met", true],
    ["not-met", "not met", true],
    ["promise", "confirmed load", found.carries !== null],
    ["interval", range, found.low !== null && found.high !== null],
    ["fails", "lowest load that failed", found.fails_at !== null],
  ];
  const items = legend.filter(([, , is]) => is).map(([name, text]) => element("span", {}, element("i", { class: name }), say(text)));
  return section(
    "capacity",
    say("Capacity"),
    element("p", { class: "answer" }, tell(found.sentence)),
    found.levels.length > 1 && element("div", { class: "key" }, ...items),
    element(
      "div",
      { class: "charts" },
      // Throughput says nothing of how many users may stay.
      found.unit !== "users" && panel(found, { title: say("Served per second, by load"), of: (level) => level.served_per_s, text: short, logarithmic: false }),
      panel(found, { title: say("p99 by load"), of: (level) => (level.p99_s === null ? null : level.p99_s * 1e9), text: duration, logarithmic: true }),
    ),
    levels(found),
  );
}
