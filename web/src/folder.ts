// The runs of a folder: a list that can be sorted and filtered, reports, comparisons of several runs on
// the same axes, trends by scenario, and a form that starts runs if that is allowed.

import { COLOURS, forgetAll, Panel, redraw, type Chart, type Line } from "./charts";
import { loadText } from "./capacity";
import type { Carried, Column as Values, Compared, Data, Figure, Series } from "./data";
import { element, patch, section, table, type Column } from "./dom";
import { show } from "./report";
import { saves } from "./saved";
import { count, duration, micros, share, short } from "./units";
import { learn, say, speak, spoken, tell } from "./words";

interface Figures {
  lasted_ns: number;
  count: number;
  failed: number;
  ok_per_s: number;
  p50_ns: number | null;
  p95_ns: number | null;
  p99_ns: number | null;
}

interface Run {
  name: string;
  scenario: string;
  started: string;
  targets: string[];
  labels: Record<string, string>;
  exit_code: number | null;
  goes_on: boolean;
  /** Null until they are read, or if they cannot be read. */
  figures: Figures | null;
}

interface Started {
  scenario: string;
  name: string;
  live: string | null;
  goes_on: boolean;
  exit_code: number | null;
  said: string | null;
}

interface List {
  folder: string;
  runs: Run[];
  waiting: number;
  left_off: number;
  passed_over: { name: string; why: string }[];
  passed_over_count: number;
  can_run?: boolean;
  started?: Started[];
}

interface Scenario {
  name: string;
  inputs: { name: string; default: string | null; secret: boolean }[];
}

const token = new URLSearchParams(location.search).get("token") ?? "";
const page = document.getElementById("page")!;
/** Runs to compare, in the order in which they were selected. */
let chosen: string[] = [];
let list: List | null = null;
let scenarios: Scenario[] = [];

async function get<It>(path: string, query = ""): Promise<It> {
  const answer = await fetch(`${path}?token=${encodeURIComponent(token)}${query}`);
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  const told = await answer.json();
  if (told.error) throw new Error(told.error);
  learn(told.renderings);
  return told as It;
}

/** What follows the `#` in the URL: nothing means the list. */
const place = (): URLSearchParams => new URLSearchParams(location.hash.slice(1));
const hash = (names: Record<string, string>): string => `#${new URLSearchParams(names)}`;

export function browse(): void {
  addEventListener("hashchange", () => void open());
  void open();
  void follow();
}

async function open(): Promise<void> {
  const [run, compared] = [place().get("run"), place().get("compare")];
  forgetAll();
  page.replaceChildren(element("p", { role: "status" }, say("Loading …")));
  try {
    const query = `&name=${encodeURIComponent(run ?? "")}`;
    if (run !== null) show(await get<Data>("run", query), () => back(saves(token, ["csv", "json", "html"], query)));
    else if (compared !== null) await compare(compared.split("/"));
    else if (place().has("trends")) await trends();
    else await overview();
  } catch (error) {
    page.replaceChildren(back(), element("p", { role: "alert" }, String(error instanceof Error ? error.message : error)));
  }
  scrollTo(0, 0);
}

function back(more?: HTMLElement): HTMLElement {
  return element("nav", { class: "bar", "aria-label": say("Pages") }, element("a", { href: "#" }, `← ${say("All runs")}`), more);
}

/** Asks for the list again: often while something changes, else now and then. */
async function follow(): Promise<void> {
  for (;;) {
    const busy = list !== null && (list.waiting > 0 || list.runs.some((it) => it.goes_on) || (list.started ?? []).some((it) => it.goes_on));
    await new Promise((done) => setTimeout(done, busy ? 1500 : 8000));
    if (document.hidden || location.hash.length > 1) continue;
    try {
      const told = await get<List>("runs");
      const same = JSON.stringify(told) === JSON.stringify(list);
      list = told;
      if (!same && location.hash.length <= 1) again();
    } catch {
      // The next request may succeed.
    }
  }
}

async function overview(): Promise<void> {
  list = await get<List>("runs");
  if (list.can_run) scenarios = await get<Scenario[]>("scenarios");
  if (location.hash.length > 1) return;
  document.title = `${say("Runs")} · throng`;
  page.replaceChildren(head(say("Runs"), list.folder), begin() ?? "", element("div", { id: "list" }));
  again();
}

/** `redrawn` draws the page again in another language; without it the page is loaded again. */
function head(title: string, note: string, redrawn?: () => void): HTMLElement {
  const theme = element("button", { type: "button", id: "theme" }, say("Theme"));
  theme.addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    redraw();
  });
  const language = element("button", { type: "button", id: "language" }, spoken() === "zh" ? "English" : "中文");
  language.addEventListener("click", () => {
    speak(spoken() === "zh" ? "en" : "zh");
    if (redrawn) redrawn();
    else void open();
  });
  const trends = !redrawn && !place().has("trends") && element("a", { href: "#trends" }, say("Trends"));
  return element("header", {}, element("div", { class: "what" }, element("h1", {}, title), note !== "" && element("p", {}, note)), element("div", { class: "tools" }, trends, language, theme));
}

/** Draws the parts that change. */
function again(): void {
  const holder = document.getElementById("list");
  if (holder === null || list === null) return;
  const told = list;
  chosen = chosen.filter((name) => told.runs.some((run) => run.name === name));
  patch(holder, element("div", { id: "list" }, ongoing(told), runs(told), passedOver(told)), () => {});
}

const words: Record<number, [string, string]> = { 0: ["good", "passed"], 1: ["bad", "failed"], 4: ["bad", "failed"], 5: ["bad", "invalid"], 130: ["warn", "interrupted"] };

function verdict(run: Run): [string, string] {
  if (run.goes_on) return ["good", "running"];
  if (run.exit_code === null) return ["warn", "incomplete"];
  return words[run.exit_code] ?? ["bad", "failed"];
}

function runs(told: List): HTMLElement | null {
  const button = element("button", { type: "button", id: "compare" });
  const count_ = () => {
    button.textContent = `${say("Compare")} (${chosen.length})`;
    button.disabled = chosen.length < 2 || chosen.length > 8;
  };
  count_();
  button.addEventListener("click", () => (location.hash = hash({ compare: chosen.join("/") })));
  const box = (run: Run) => {
    const made = element("input", { type: "checkbox", "aria-label": `${say("Compare")}: ${run.name}` });
    made.checked = chosen.includes(run.name);
    made.addEventListener("change", () => {
      chosen = chosen.filter((name) => name !== run.name);
      if (made.checked) chosen.push(run.name);
      count_();
    });
    return element("span", {}, made, " ", element("a", { href: hash({ run: run.name }) }, run.name));
  };
  const figure = (title: string, of: (it: Figures) => number | null, text: (value: number | null) => string): Column<Run> => ({
    title,
    value: (run) => run.figures && of(run.figures),
    text: (run) => (run.figures ? text(of(run.figures)) : "…"),
  });
  const badge = (run: Run) => {
    const [tone, word] = verdict(run);
    return element("span", { class: `badge ${tone}` }, say(word));
  };
  const shown = table<Run>(
    say("Runs"),
    [
      { title: say("run"), value: (run) => run.name, cell: box, left: true },
      { title: say("verdict"), value: (run) => say(verdict(run)[1]), cell: badge, left: true },
      { title: say("scenario"), value: (run) => run.scenario, left: true },
      { title: say("start time"), value: (run) => run.started, cell: (run) => element("time", {}, run.started.replace("T", " ").replace(/(\.\d+)?Z$/, "")), left: true },
      { title: say("targets"), value: (run) => run.targets.join(", "), left: true },
      figure(say("duration"), (it) => it.lasted_ns, duration),
      figure(say("attempts"), (it) => it.count, count),
      figure(say("ok/s"), (it) => it.ok_per_s, count),
      figure(say("failures"), (it) => (it.count > 0 ? it.failed / it.count : null), share),
      figure("p50", (it) => it.p50_ns, duration),
      figure("p95", (it) => it.p95_ns, duration),
      figure("p99", (it) => it.p99_ns, duration),
    ],
    told.runs,
    say("Filter"),
  );
  const left = told.left_off > 0 && element("p", {}, `${say("Older runs not listed")}: ${count(told.left_off)}`);
  if (shown === null) return element("p", {}, say("This folder has no runs yet."));
  const hint = element("span", {}, say("Select two to eight runs to compare them. The first one you select is the baseline."));
  return element("section", { id: "runs" }, element("div", { class: "bar" }, button, hint), shown, left);
}

function passedOver(told: List): HTMLElement | null {
  if (told.passed_over_count === 0) return null;
  const line = (it: { name: string; why: string }) => element("li", {}, element("span", {}, it.name), element("span", {}, tell(it.why)));
  return element(
    "details",
    {},
    element("summary", {}, `${say("Skipped")}: ${count(told.passed_over_count)}`),
    element("ul", { class: "plain" }, ...told.passed_over.map(line)),
  );
}

/** Runs that were started from this page. */
function ongoing(told: List): HTMLElement | null {
  const line = (it: Started) => {
    const link = it.live && element("a", { href: it.live, target: "_blank", rel: "noreferrer" }, say("Live page"));
    const report = !it.goes_on && it.exit_code !== 2 && element("a", { href: hash({ run: it.name }) }, say("Report"));
    const state = it.goes_on ? say("running") : `${say("exit code")} ${it.exit_code ?? "–"}`;
    const said = it.said && element("details", {}, element("summary", {}, say("Output")), element("pre", {}, it.said));
    return element("li", {}, element("span", {}, `${it.scenario} · ${state}`), said, element("span", {}, link || report || ""));
  };
  const all = (told.started ?? []).map(line);
  return all.length === 0 ? null : section("started", say("Started from this page"), element("ul", { class: "plain" }, ...all));
}

/** The form that starts a run: a scenario and its variables. */
function begin(): HTMLElement | null {
  if (!list?.can_run) return null;
  if (scenarios.length === 0) return section("begin", say("Start a run"), element("p", {}, say("The folder given with --allow-run has no scenarios.")));
  const select = element("select", { "aria-label": say("Scenario"), id: "scenario" });
  for (const it of scenarios) select.append(element("option", { value: it.name }, it.name));
  const fields = element("div", { class: "bar", id: "variables" });
  const level = (name: string, text: string, placeholder: string) =>
    element("label", {}, `${say(text)} `, element("input", { name, placeholder, autocomplete: "off", size: "8" }));
  const load = element(
    "fieldset",
    { class: "bar", id: "load" },
    element("legend", {}, say("Load for this run; empty fields keep the value of the scenario")),
    level("users", "Users", "500"),
    level("rate", "Starts per second", "100/s"),
    level("duration", "Duration", "5m"),
  );
  const status = element("span", { role: "status", id: "begun" });
  const draw = () => {
    const inputs = scenarios.find((it) => it.name === select.value)?.inputs ?? [];
    fields.replaceChildren(
      ...inputs.map((it) => {
        const input = element("input", { name: it.name, type: it.secret ? "password" : "text", placeholder: it.default ?? "", autocomplete: "off" });
        return element("label", {}, `${it.name} `, input);
      }),
    );
  };
  select.addEventListener("change", draw);
  draw();
  const button = element("button", { type: "submit", id: "start" }, say("Start"));
  const form = element("form", {}, element("div", { class: "bar" }, select, button, status), load, fields);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = (within: HTMLElement) => {
      const inputs = [...within.querySelectorAll("input")].filter((input) => input.value !== "");
      return Object.fromEntries(inputs.map((input) => [input.name, input.value]));
    };
    void start({ scenario: select.value, load: given(load), set: given(fields) }).then((said) => (status.textContent = said));
  });
  return section("begin", say("Start a run"), form);
}

async function start(wanted: Record<"load" | "set", Record<string, string>> & { scenario: string }): Promise<string> {
  try {
    const answer = await fetch("start", { method: "POST", headers: { "X-Throng-Token": token }, body: JSON.stringify(wanted) });
    const told = answer.ok ? await answer.json() : { error: `${answer.status} ${await answer.text()}` };
    list = await get<List>("runs");
    again();
    return told.error ?? say("Started {}", told.name);
  } catch (error) {
    return String(error);
  }
}

/** `860/s (864 to 905)` */
function carries(it: Carried | null): string {
  if (it === null) return "–";
  const promise = it.carries === null ? say("not confirmed") : loadText(it, it.carries);
  return it.low === null || it.high === null ? promise : `${promise} (${say("{} to {}", count(it.low), count(it.high))})`;
}

const told = (unit: string, value: number | null): string => {
  if (value === null) return "–";
  if (unit === "ns") return duration(value);
  return unit === "share" ? share(value) : count(value);
};

/** Compares runs of the folder; the baseline can be changed on the page. */
async function compare(names: string[]): Promise<void> {
  const data = await get<Compared>("compare", names.map((name) => `&run=${encodeURIComponent(name)}`).join(""));
  const baseline = element("select", { "aria-label": say("Baseline") });
  for (const it of names) baseline.append(element("option", { value: it }, it));
  baseline.addEventListener("change", () => {
    const rest = names.filter((name) => name !== baseline.value);
    location.hash = hash({ compare: [baseline.value, ...rest].join("/") });
  });
  sideBySide(data, [back(), head(say("Comparison of runs"), ""), element("div", { class: "bar" }, element("label", {}, `${say("Baseline")} `, baseline))]);
}

/** A comparison that was written to a file: the page contains its data. */
export function showComparison(data: Compared): void {
  learn(data.renderings);
  const draw = () => {
    forgetAll();
    sideBySide(data, [head(say("Comparison of runs"), `${say("Baseline")}: ${data.runs[0].name}`, draw)]);
  };
  draw();
}

/** Curves on the same axes, aligned at the start of each run, and changes beyond noise. */
function sideBySide(data: Compared, above: HTMLElement[]): void {
  const names = data.runs.map((it) => it.name);
  const width = Math.max(...data.runs.map((it) => it.series.width_s));
  const points = Math.max(...data.runs.map((it) => Math.ceil((it.series.times.p50.length * it.series.width_s) / width)));
  const times = Array.from({ length: points }, (_, at) => at * width);
  // The points are those of the coarsest run. Of finer runs each shows the largest value, of rates the mean.
  const spread = ({ series, lasted_ns }: Compared["runs"][number], values: Values, isCount: boolean): Values => {
    const each = Math.round(width / series.width_s);
    return times.map((_, at) => {
      const part = values.slice(at * each, (at + 1) * each).filter((it): it is number => it !== null);
      if (part.length === 0) return null;
      if (!isCount) return Math.max(...part);
      // Too short a part of a point gives no rate.
      const covered = Math.min(width, lasted_ns / 1e9 - at * width);
      return covered < Math.min(width, series.width_s) / 2 ? null : part.reduce((sum, it) => sum + it, 0) / covered;
    });
  };
  const lines = (of: (series: Series) => Values, isCount = false): Line[] =>
    data.runs.map((it, at) => ({ label: it.name, values: spread(it, of(it.series), isCount), colour: COLOURS[at] }));
  const perSecond = (value: number) => `${count(value)}/s`;
  const charts: Chart[] = [
    { title: say("Successful attempts per second"), unit: perSecond, axis: short, lines: lines((it) => it.ok, true) },
    { title: say("Failed attempts per second"), unit: perSecond, axis: short, lines: lines((it) => it.failed, true) },
    { title: `${say("Response times")} p50`, unit: micros, logarithmic: true, lines: lines((it) => it.times.p50) },
    { title: `${say("Response times")} p99`, unit: micros, logarithmic: true, lines: lines((it) => it.times.p99) },
    { title: say("Users"), unit: count, axis: short, lines: lines((it) => it.users_online) },
  ];
  const panel = new Panel();
  document.title = `${say("Compare")} · throng`;
  const figures = data.comparison.comparisons.map((it, at) => changes(it, names[at + 1]));
  page.replaceChildren(
    ...above,
    section("time", say("Over time"), panel.element) ?? "",
    ...figures,
  );
  panel.show(times, charts, []);
}

function changes(held: Compared["comparison"]["comparisons"][number], name: string): HTMLElement {
  const rows = held.rows.flatMap((row) => row.figures.map((figure) => ({ ...figure, name: row.name ?? say("all steps") })));
  type Changed = (typeof rows)[number];
  const change = (it: Changed) => {
    if (it.change === null) return "–";
    const sign = (value: number) => `${value > 0 ? "+" : ""}${(value * 100).toFixed(1)} %`;
    const { by, low, high } = it.change;
    return low === null || high === null ? sign(by) : `${sign(by)} (${sign(low)} … ${sign(high)})`;
  };
  const judged = (it: Changed) => {
    if (it.change === null) return "–";
    return say(it.change.low === null ? "run too short" : (it.verdict ?? "–"));
  };
  const shown = table<Changed>(
    `${name} · ${say("compared with the baseline")}`,
    [
      { title: say("step"), value: (it) => it.name, left: true },
      { title: say("metric"), value: (it) => it.figure, left: true },
      { title: say("Baseline"), value: (it) => it.baseline, text: (it) => told(it.unit, it.baseline) },
      { title: say("value"), value: (it) => it.value, text: (it) => told(it.unit, it.value) },
      { title: say("change"), value: (it) => it.change?.by, text: change },
      { title: say("verdict"), value: judged, left: true },
    ],
    rows,
    say("Filter"),
  );
  const unlike = held.unlike.length > 0 && element("div", {}, element("h3", {}, say("Other differences")), element("ul", {}, ...held.unlike.map((it) => element("li", {}, tell(it)))));
  const { capacity } = held;
  const carried = capacity && element("p", {}, `${say("Capacity")}: ${carries(capacity.baseline)} → ${carries(capacity.value)} · ${say(capacity.verdict)}`);
  return element("section", {}, element("h2", {}, name), carried, shown, unlike);
}

interface Trend {
  name: string;
  /** What all runs are compared with; null for the run before each. */
  baseline: string | null;
  runs: { id: string; directory: string; started: string; exit_code: number; figures: Figure[]; capacity: (Carried & { verdict: string | null }) | null; unlike: string[] }[];
  shifts: { since: string | null; figure: string; unit: string; before: number; after: number; by: number }[];
}

/** Each figure of a scenario from run to run; with a baseline, only for the baseline's scenario. */
async function trends(): Promise<void> {
  const baseline = place().get("baseline");
  const data = await get<{ folder: string; scenarios: Trend[] }>("history", baseline ? `&baseline=${encodeURIComponent(baseline)}` : "");
  document.title = `${say("Trends")} · throng`;
  page.replaceChildren(back(), head(say("Trends"), data.folder), ...data.scenarios.map(trend));
}

const nameOf = (directory: string): string => directory.split("/").at(-1) ?? directory;

function trend(one: Trend): HTMLElement {
  const names = [...new Set(one.runs.flatMap((run) => run.figures.map((it) => it.figure)))];
  const of = (run: Trend["runs"][number], figure: string) => run.figures.find((it) => it.figure === figure);
  const held = one.runs.find((run) => nameOf(run.directory) === one.baseline);
  const figures = names.map((name): Column<Trend["runs"][number]> => {
    const cell = (it: Figure | undefined) => (it ? told(it.unit, it.value) : "–");
    const changed = (it: Figure | undefined) => (it?.change ? ` (${it.change.by > 0 ? "+" : ""}${(it.change.by * 100).toFixed(1)} %)` : "");
    return { title: name, value: (run) => of(run, name)?.value, text: (run) => cell(of(run, name)) + (held ? changed(of(run, name)) : "") };
  });
  const curves = names.map((name) => {
    const values = one.runs.map((run) => of(run, name)?.value ?? null);
    const unit = of(one.runs[0], name)?.unit ?? "";
    return element("figure", {}, element("figcaption", {}, name), sparkline(values, (value) => told(unit, value), name, held ? one.runs.indexOf(held) : null));
  });
  const shift = (it: Trend["shifts"][number]) => {
    const since = one.runs.find((run) => run.id === it.since);
    const text = `${it.figure}: ${told(it.unit, it.before)} → ${told(it.unit, it.after)}`;
    return element("li", {}, element("span", {}, text), element("span", {}, since ? `${say("since")} ${nameOf(since.directory)}` : ""));
  };
  const searches = one.runs.flatMap(({ capacity }) => (capacity === null ? [] : [capacity]));
  if (searches.length > 0) {
    const { unit } = searches.at(-1)!;
    // Rates and numbers of users have no axis in common.
    const capacities = one.runs.map(({ capacity }) => (capacity?.unit === unit ? capacity : null));
    const band = capacities.map((it) => (it === null || it.low === null || it.high === null ? null : ([it.low, it.high] as const)));
    const values = capacities.map((it) => it?.carries ?? null);
    const text = (value: number) => loadText({ unit }, value);
    curves.unshift(element("figure", {}, element("figcaption", {}, say("capacity")), sparkline(values, text, say("capacity"), null, band)));
    const found = (run: Trend["runs"][number]) => carries(run.capacity) + (run.capacity?.verdict ? ` · ${say(run.capacity.verdict)}` : "");
    figures.unshift({ title: say("capacity"), value: (run) => run.capacity?.carries, text: found });
  }
  const rows = table<Trend["runs"][number]>(
    `${one.name} · ${say("Runs")}`,
    [
      {
        title: say("run"),
        value: (run) => nameOf(run.directory),
        cell: (run) => {
          const link = element("a", { href: hash({ run: nameOf(run.directory) }) }, nameOf(run.directory));
          return element("span", {}, link, " ", run === held && element("span", { class: "badge" }, say("Baseline")));
        },
        left: true,
      },
      { title: say("exit code"), value: (run) => run.exit_code },
      ...figures,
      { title: say("other changes"), value: (run) => run.unlike.map(tell).join("; "), left: true },
    ],
    [...one.runs].reverse(),
    say("Filter"),
  );
  const made = element("section", { class: "trend" }, element("h2", {}, one.name), baselines(one));
  if (one.shifts.length > 0) made.append(element("h3", {}, say("Lasting changes")), element("ul", { class: "plain" }, ...one.shifts.map(shift)));
  made.append(element("div", { class: "sparks" }, ...curves));
  if (rows) made.append(rows);
  return made;
}

/** Selects what the runs of a scenario are compared with. */
function baselines(one: Trend): HTMLElement {
  const select = element("select", { "aria-label": `${say("Baseline")}: ${one.name}` });
  select.append(element("option", { value: "" }, say("previous run")));
  for (const run of [...one.runs].reverse()) select.append(element("option", { value: nameOf(run.directory) }, nameOf(run.directory)));
  select.value = one.baseline ?? "";
  select.addEventListener("change", () => (location.hash = select.value === "" ? "#trends" : hash({ trends: "", baseline: select.value })));
  const all = one.baseline !== null && element("a", { href: "#trends" }, say("All scenarios"));
  return element("div", { class: "bar" }, element("label", {}, `${say("Baseline")} `, select), all);
}

/**
 * A small curve with its first, last, smallest and largest value as text. A horizontal line is the baseline, vertical
 * lines are intervals.
 */
function sparkline(values: Values, text: (value: number) => string, name: string, baseline: number | null, intervals: (readonly [number, number] | null)[] = []): Element {
  const known = values.filter((value): value is number => value !== null);
  const drawn = [...known, ...intervals.flatMap((it) => it ?? [])];
  const [low, high] = [Math.min(...drawn), Math.max(...drawn)];
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const [width, height] = [240, 56];
  const span = known.length === 0 ? name : `${name}: ${text(known[0])} → ${text(known.at(-1)!)} (${text(Math.min(...known))} – ${text(Math.max(...known))})`;
  const held = baseline === null ? null : values[baseline];
  const label = held === null ? span : `${span} · ${say("Baseline")} ${text(held)}`;
  for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "spark" })) made.setAttribute(key, value);
  const x = (at: number) => 4 + (at * (width - 8)) / Math.max(1, values.length - 1);
  const y = (value: number) => height - 6 - ((value - low) / (high - low || 1)) * (height - 12);
  const dots = values.flatMap((value, at) => (value === null ? [] : [`${x(at).toFixed(1)},${y(value).toFixed(1)}`]));
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", dots.join(" "));
  if (held !== null) {
    const across = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const places = { x1: "4", x2: String(width - 4), y1: y(held).toFixed(1), y2: y(held).toFixed(1) };
    for (const [key, value] of Object.entries(places)) across.setAttribute(key, value);
    const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    for (const [key, value] of Object.entries({ cx: x(baseline!).toFixed(1), cy: y(held).toFixed(1), r: "3", class: "baseline" })) dot.setAttribute(key, value);
    made.append(across, dot);
  }
  for (const [at, interval] of intervals.entries()) {
    if (interval === null) continue;
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const places = { x1: x(at).toFixed(1), x2: x(at).toFixed(1), y1: y(interval[0]).toFixed(1), y2: y(interval[1]).toFixed(1), class: "interval" };
    for (const [key, value] of Object.entries(places)) bar.setAttribute(key, value);
    made.append(bar);
  }
  const last = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  const [cx, cy] = (dots.at(-1) ?? "0,0").split(",");
  for (const [key, value] of Object.entries({ cx, cy, r: "3" })) last.setAttribute(key, value);
  made.append(line, last);
  return element("div", {}, made as unknown as Node, element("p", {}, label.slice(name.length + 2)));
}
