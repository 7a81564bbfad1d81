// The page of a run: the figures a reader needs first, then the charts, then all tables. While the run
// goes on, only the parts that have changed are drawn again.

import { capacity } from "./capacity";
import { chainBar, chainText } from "./chains";
import { levels } from "./levels";
import { COLOURS, forget, Panel, percentiles, redraw, zoom, zoomOut, type Chart, type Line, type Mark } from "./charts";
import type { Column as Values, Data, Picture, Series, StepSeries, Summary, Times } from "./data";
import { element, patch, section, table, type Column } from "./dom";
import { events } from "./events";
import { findings, gaveWay, stability } from "./findings";
import { funnel } from "./funnel";
import { heat } from "./heat";
import { machineCharts } from "./machines";
import { audits } from "./audits";
import { population } from "./population";
import { figureOf, told } from "./tables";
import { monitorCharts, monitors } from "./monitors";
import { bytes, clock, count, duration, micros, share, short } from "./units";
import { learn, say, speak, spoken, tell } from "./words";

let data: Data;
let summary: Summary;
let series: Series;
const page = document.getElementById("page")!;

/** The word for attempts: requests, if every attempt of the run is one. */
const attempts = (word: string): string => (data.requests ? word.replace("attempt", "request").replace("Attempt", "Request") : word);

/** How many seconds a point covers. The last point may be partial: too short a part gives no rate. */
const covered = (at: number): number => Math.min(series.width_s, lasted() - at * series.width_s);
const lasted = (): number => (data.live ? (data.seconds ?? 0) : summary.lasted_ns / 1e9);
const rate = (values: Values): Values => values.map((value, at) => (value === null || covered(at) < series.width_s / 2 ? null : value / covered(at)));
const perSecond = (value: number) => `${count(value)}/s`;

/** Positions of the points on the time axis, in seconds. */
const times = (): number[] => series.times.p50.map((_, at) => at * series.width_s);

function marks(): Mark[] {
  const name = (text: string) => summary.phases[Number(text)]?.name ?? text;
  const found = (summary.findings ?? []).map((it) => ({ at_s: it.when.from_s, to_s: it.when.to_s, about: it.when.series, text: it.code, phase: false }));
  const events = data.events
    .filter((event) => event.kind !== "notice")
    .map((event) => ({
      at_s: event.at_ns / 1e9,
      text: event.kind === "phase" ? name(event.text) : tell(event.text) || say(KINDS[event.kind] ?? event.kind),
      phase: event.kind === "phase",
    }));
  return [...events, ...found];
}

function verdict(): [string, string] {
  const outcome = summary.outcome;
  if (data.live) return isConnected ? ["good", "running"] : ["bad", "connection lost"];
  if (!outcome || isUnfinished()) return ["warn", "incomplete"];
  if (summary.capacity && outcome.valid && [0, 1, 5].includes(outcome.exit_code)) return [["good", "bad"][outcome.exit_code] ?? "warn", tell(outcome.headline)];
  if (outcome.exit_code === 5 || !outcome.valid) return ["bad", "invalid"];
  if (outcome.exit_code !== 0) return ["bad", "failed"];
  return summary.thresholds.length > 0 ? ["good", "passed"] : ["warn", "no thresholds"];
}

/** The run was killed, or was in progress when this was saved. */
const isUnfinished = (): boolean => summary.run.ended === null;

let isConnected = true;

function setBadge(badge: Element): void {
  const [tone, word] = verdict();
  const exit = summary.outcome && !isUnfinished() ? ` · ${say("exit code")} ${summary.outcome.exit_code}` : "";
  badge.className = `badge ${tone}`;
  badge.textContent = say(word) + (data.live ? ` · ${clock(lasted())}` : exit);
}

function header(): HTMLElement {
  const { run } = summary;
  const badge = element("span", { class: "badge" });
  setBadge(badge);
  const targets = run.targets.join(", ") + (run.same_host ? ` (${say("same host")})` : "");
  // As in the summary: the users that were there, which may differ from the planned number.
  const users = Math.max(summary.users.present_max, summary.users.online_max);
  const facts = [targets, `${count(data.live ? run.users_planned : users)} ${say("users")}`, !data.live && length(), String(run.started).replace("T", " ").replace(/(\.\d+)?Z$/, " UTC")].filter(Boolean);
  const theme = element("button", { type: "button", id: "theme" }, say("Theme"));
  theme.addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    redraw();
    again(["population"]);
  });
  const language = element("button", { type: "button", id: "language" }, spoken() === "zh" ? "English" : "中文");
  language.addEventListener("click", () => {
    speak(spoken() === "zh" ? "en" : "zh");
    standing = null;
    draw();
  });
  const labels = Object.entries(run.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  return element(
    "header",
    {},
    element("div", { class: "what" }, element("h1", {}, run.name), element("p", {}, facts.join(" · ")), labels.length > 0 && element("p", {}, labels.join(" · "))),
    badge,
    element("div", { class: "tools" }, language, theme),
  );
}

/** How long was measured, and how long the run took if that is longer. */
function length(): string {
  const { measured_ns, lasted_ns } = summary;
  if (measured_ns >= 0.95 * lasted_ns) return duration(measured_ns);
  return say("{} of {} measured", duration(measured_ns), duration(lasted_ns));
}

function notices(): HTMLElement | null {
  const outcome = summary.outcome;
  const damaged = ["lines_missing", "lines_lost", "lines_unreadable"].some((name) => summary.record[name] > 0);
  if (data.live) {
    const missed = data.missed ?? 0;
    return missed === 0 ? null : element("div", { class: "notice", role: "note" }, element("p", {}, say("This page could not keep up: {} lines are missing. The report will contain them.", count(missed))));
  }
  const lines = [
    isUnfinished() && say("The run was in progress, or was killed: this report contains its first {}.", duration(summary.lasted_ns)),
    outcome && !outcome.valid && `${say("The result is invalid")}: ${tell(outcome.headline)}`,
    damaged && say("The run directory is not complete"),
    ...(outcome?.warnings ?? []).map((warning) => tell(warning.text)),
  ].filter((line): line is string => Boolean(line));
  return lines.length === 0 ? null : element("div", { class: "notice", role: "note" }, ...lines.map((line) => element("p", {}, line)));
}

function cards(): HTMLElement {
  const { total, users, connections } = summary;
  const card = (name: string, figure: string, note: string) => element("div", { class: "card" }, element("span", {}, say(name)), element("b", {}, figure), element("span", {}, note));
  const failed = total.count > 0 ? total.failed / total.count : null;
  const measured = Math.max(summary.measured_ns, 1) / 1e9;
  const after = (total.ok_after ?? 0) > 0.01 * total.ok ? ` · ${say("{} ok after the load ended", count(total.ok_after))}` : "";
  const met = summary.thresholds.filter((it) => it.verdict === "met").length;
  // Too few values have no p99.
  const [name, highest] = QUANTILES_SHOWN.map(([name, of]) => [name, total.latency?.[of]] as const).find(([, ns]) => ns != null) ?? ["p99", null];
  const times = [`${say("median")} ${duration(total.latency?.p50_ns)}`, `p95 ${duration(total.latency?.p95_ns)}`, `${say("max")} ${duration(total.latency?.max_ns)}`];
  const shown = [
    card(attempts("attempts"), short(total.count), `${count(total.count)} · ${count(total.ok_per_s)} ${say("ok/s")}${after}`),
    card(attempts("failed attempts"), share(failed), `${count(total.failed)}`),
    deliveryCard(card),
    summary.thresholds.length > 0 && card("thresholds met", `${count(met)} / ${count(summary.thresholds.length)}`, verdictText()),
    card("response time", `${name} ${duration(highest)}`, times.join(" · ")),
    card("users", short(users.online_max), `${say("at peak")} · ${count(connections.open_max)} ${say("connections")}`),
    card("throughput", `${bytes(summary.received_bytes / measured)}/s`, `${say("received")} · ${say("sent")} ${bytes(summary.sent_bytes / measured)}/s`),
  ].filter((it): it is HTMLElement => Boolean(it));
  // Cards are in rows of three: fill the last one.
  if (shown.length < 6) shown.push(card(attempts("slowest attempt"), duration(total.latency?.max_ns), `p99.9 ${duration(total.latency?.p99_9_ns)}`));
  return element("div", { class: "cards" }, ...shown);
}

const QUANTILES_SHOWN: [string, keyof Times][] = [
  ["p99", "p99_ns"],
  ["p95", "p95_ns"],
  ["p90", "p90_ns"],
  ["p50", "p50_ns"],
];

/** The verdict of the run, next to its thresholds: they need not be the reason for it. */
const verdictText = (): string => (data.live ? say("so far") : say(verdict()[1]));

/** The outcome of all deliveries together. */
function deliveryCard(card: (name: string, figure: string, note: string) => HTMLElement): HTMLElement | false {
  const rows: any[] = summary.deliveries ?? [];
  const of = (name: string): number => rows.reduce((sum, row) => sum + row[name], 0);
  const expected = of("expected");
  if (expected === 0) return false;
  const note = [`${count(of("lost"))} ${say("lost")}`, of("excused") > 0 && `${count(of("excused"))} ${say("undetermined")}`].filter(Boolean).join(" · ");
  return card("delivered", share(of("delivered") / expected), `${count(of("delivered"))} / ${count(expected)} · ${note}`);
}

/** Verdicts of thresholds and kinds of events: words of the JSON, and how the page shows them. */
const VERDICTS: Record<string, string> = { "not-met": "not met", indeterminate: "undetermined" };
const KINDS: Record<string, string> = {
  "target-lost": "target unreachable",
  held: "growth paused",
  released: "growth resumed",
  "given-up": "growth ended",
  "backed-off": "load reduced",
  "machine-lost": "machine lost",
};

const SIGNS: Record<string, [string, string]> = { met: ["met", "✓"], "not-met": ["missed", "✗"] };

/** Whether throng itself affected what was measured. */
function ownFigures(): HTMLElement {
  const { generator } = summary;
  const late = generator.lateness ? `p99 ${duration(generator.lateness.p99_ns)}` : "–";
  const told = `${say("lateness")} ${late} · ${generator.cores.toFixed(2)} ${say("cores")} · ${bytes(generator.memory_max_bytes)}`;
  return element("p", { class: "own" }, told);
}

function first(): HTMLElement {
  const thresholds = [...summary.thresholds].sort((one, two) => Number(one.verdict === "met") - Number(two.verdict === "met"));
  const line = (it: (typeof thresholds)[number]) => {
    const [tone, sign] = SIGNS[it.verdict] ?? ["unsure", "?"];
    const word = say(VERDICTS[it.verdict] ?? it.verdict);
    const unsure = tone === "unsure" ? `${word} · ` : "";
    const told = it.largest_of == null ? unsure : `${unsure}${say("largest of {} values", count(it.largest_of))}: `;
    const shown = element("span", { class: tone, role: "img", "aria-label": word }, sign);
    return element("li", {}, shown, element("span", {}, it.text), element("span", {}, told + figureOf(it.figure, it.unit)));
  };
  const worst = summary.errors.slice(0, 5).map((it) => element("li", {}, element("span", {}, `${it.step}: ${tell(it.text)}`), element("span", {}, count(it.count))));
  // Thresholds that are not met are listed next to this.
  const isThreshold = (reason: string) => summary.thresholds.some((it) => reason.endsWith(`: ${it.text}`));
  const reasons = (data.live ? [] : (summary.outcome?.reasons ?? [])).filter((it) => !isThreshold(it)).map((reason) => element("li", {}, element("span", {}, tell(reason)), element("span", {})));
  return element(
    "div",
    { class: "two" },
    section("thresholds", say("Thresholds"), thresholds.length > 0 && element("ul", { class: "plain" }, ...thresholds.map(line))),
    section("reasons", say("What failed"), reasons.length + worst.length > 0 && element("ul", { class: "plain" }, ...reasons, ...worst)),
    section("generator", say("Generator"), ownFigures()),
  );
}

const QUANTILES: [string, string, string][] = [
  ["p50", "p50", "--sky"],
  ["p90", "p90", "--blue"],
  ["p99", "p99", "--orange"],
  ["p999", "p99.9", "--red"],
  ["max", "max", "--grey"],
];

/** Percentiles of response times, and the p99 of service times as a dotted line. */
function timeLines(of: (name: string) => Values): Line[] {
  const times: Line[] = QUANTILES.map(([name, label, colour]) => ({ label, values: of(name), colour, width: name === "p99" ? 2.5 : undefined }));
  return [...times, { label: `${say("service time")} p99`, values: of("service_p99"), colour: "--ink", dash: [2, 5] }];
}

/** For loads with a rate: scheduled starts, actual starts, and the backlog of starts that are due. */
function starts(): Chart[] {
  if (!series.wanted.some((value: number | null) => value)) return [];
  const begun = { label: say("actual"), values: rate(series.begun), colour: COLOURS[2] };
  const wanted = { label: say("scheduled"), values: rate(series.wanted), colour: COLOURS[7], dash: [4, 4] };
  const waiting = { label: say("backlog"), values: series.backlog, colour: COLOURS[4] };
  return [
    { title: say("Starts per second"), unit: perSecond, axis: short, lines: [begun, wanted] },
    { title: say("Backlog of starts"), shows: ["backlog"], unit: count, axis: short, lines: [waiting] },
  ];
}

function charts(): Chart[] {
  const all: Chart[] = [
    {
      title: say(attempts("Attempts per second")),
      shows: ["ok", "failed"],
      unit: perSecond,
      axis: short,
      lines: [
        { label: say("ok"), values: rate(series.ok), colour: COLOURS[2], fill: true },
        { label: say("failures"), values: rate(series.failed), colour: COLOURS[3] },
      ],
    },
    {
      title: say("Response times"),
      shows: ["p50", "p99", "max"],
      unit: micros,
      logarithmic: true,
      lines: timeLines((name) => series.times[name]),
    },
    {
      title: say("Users"),
      shows: ["users_online"],
      unit: count,
      axis: short,
      lines: [
        { label: say("online"), values: series.users_online, colour: COLOURS[0], fill: true },
        { label: say("present"), values: series.users_present, colour: COLOURS[5] },
        { label: say("scheduled"), values: series.users_wanted, colour: COLOURS[7], dash: [4, 4] },
      ],
    },
    ...starts(),
    { title: say("Failures by cause, per second"), shows: ["failed"], unit: perSecond, axis: short, lines: series.errors.map((it) => ({ label: tell(it.text), values: rate(it.count) })) },
    {
      title: say("Connections and requests"),
      shows: ["connections_open", "in_flight", "opened"],
      unit: count,
      axis: short,
      lines: [
        { label: say("open"), values: series.connections_open },
        { label: say("in flight"), values: series.in_flight },
        { label: say("opened per second"), values: rate(series.opened) },
      ],
    },
    { title: say("Connection setup time, p99"), shows: ["stage:connect", "stage:tls"], unit: micros, logarithmic: true, lines: series.stages.map((it) => ({ label: tell(it.stage), values: it.p99 })) },
    {
      title: say("Deliveries per second"),
      unit: perSecond,
      axis: short,
      lines: [
        { label: say("delivered"), values: rate(series.delivered), colour: COLOURS[2] },
        { label: say("lost"), values: rate(series.lost), colour: COLOURS[3] },
        { label: say("lost heartbeats"), values: rate(series.heartbeats_lost), colour: COLOURS[4] },
      ],
    },
    {
      title: say("Bytes per second"),
      unit: (value) => `${bytes(value)}/s`,
      axis: bytes,
      lines: [
        { label: say("received"), values: rate(series.bytes_in) },
        { label: say("sent"), values: rate(series.bytes_out) },
      ],
    },
    { title: say("Generator lateness, p99"), shows: ["lateness_p99"], unit: micros, logarithmic: true, lines: [{ label: say("lateness"), values: series.lateness_p99 }] },
    {
      title: say("CPU"),
      shows: ["host_cpu"],
      unit: (value) => Number(value.toPrecision(3)).toString(),
      lines: [
        { label: say("throng (cores)"), values: rate(series.cpu_ns).map((ns) => (ns === null ? null : ns / 1e9)) },
        { label: say("host (share)"), values: series.host_cpu, colour: COLOURS[7] },
      ],
    },
    { title: say("Memory used by throng"), unit: bytes, lines: [{ label: say("memory"), values: series.memory_bytes }] },
  ];
  return all;
}

/** A step's figures at the points of the time axis; a coarser point keeps its value until the next. */
function stepCharts(step: number): Chart[] {
  const own = series.steps.find((it) => it.step === step);
  if (!own) return [];
  const points = Math.round(series.step_width_s / series.width_s);
  const length = series.times.p50.length;
  const spread = (values: Values, isCount = false): Values => {
    const column: Values = Array(length).fill(null);
    own.at.forEach((at, index) => {
      const value = values[index];
      const each = isCount ? Math.min(series.step_width_s, Math.max(1, lasted() - at * series.step_width_s)) : 1;
      for (let point = at * points; point < Math.min((at + 1) * points, column.length); point += 1) column[point] = value === null ? null : value / each;
    });
    return column;
  };
  const rates: Line[] = [
    { label: say("ok"), values: spread(own.ok, true), colour: COLOURS[2], fill: true },
    { label: say("failures"), values: spread(own.failed, true), colour: COLOURS[3] },
  ];
  const name = stepName(step);
  return [
    { title: `${name} · ${say("Response times")}`, unit: micros, logarithmic: true, lines: timeLines((name) => spread(own[name])) },
    { title: `${name} · ${say(attempts("Attempts per second"))}`, unit: perSecond, axis: short, lines: rates },
  ];
}

const stepName = (step: number): string => data.names[step] ?? String(step);

let chosen = 0;

function byStep(): HTMLElement | null {
  if (series.steps.length === 0) return null;
  const select = element("select", { "aria-label": say("Step") });
  for (const it of series.steps) select.append(element("option", { value: String(it.step) }, stepName(it.step)));
  if (!series.steps.some((it) => it.step === chosen)) chosen = series.steps[0].step;
  select.value = String(chosen);
  select.addEventListener("change", () => {
    chosen = Number(select.value);
    drawSteps();
  });
  return section("by-step", say("One step over time"), element("div", { class: "bar" }, element("label", {}, `${say("Step")} `, select)), stepPanel.element);
}

let panel = new Panel();
let stepPanel = new Panel();
/** The names of the marks as text, which can be read aloud and searched. */
const noted = element("ol", { class: "marks" });
function note(shown: Mark[]): void {
  const named = shown.filter((mark) => !mark.phase && !mark.about);
  noted.replaceChildren(...named.map((mark) => element("li", {}, `${clock(mark.at_s)} · ${mark.text}`)));
  noted.hidden = named.length === 0;
}
const drawTimes = () => {
  note(marks());
  panel.show(times(), [...charts(), ...machineCharts(data, covered), ...monitorCharts(data)], marks());
};
const drawSteps = () => stepPanel.show(times(), stepCharts(chosen), marks());

const time = <It>(title: string, of: (row: It) => number | null | undefined): Column<It> => ({ title, value: of, text: (row) => duration(of(row)) });
const number = <It>(title: string, of: (row: It) => number | null | undefined): Column<It> => ({ title, value: of, text: (row) => count(of(row)) });
const text = <It>(title: string, of: (row: It) => string): Column<It> => ({ title, value: of, left: true });

function allTables(): HTMLElement | null {
  return section(
    "tables",
    say("Details"),
    told(data.tables.steps, say("Steps")),
    told(data.tables.transactions, say("Transactions")),
    told(data.tables.phases, say("Phases")),
    ...levels(summary.levels, data.tables.levels),
    told(data.tables.deliveries, say("Deliveries")),
    told(data.tables.changes, say("Changes during the run")),
    told(data.tables.targets, say("Targets")),
    told(data.tables.instances, say("Instances")),
    told(data.tables.labels, say("Machines by label")),
    told(data.tables.sessions, say("Sessions")),
    slowest(),
  );
}

function slowest(): HTMLElement | null {
  return table<any>(
    say(attempts("Slowest attempts")),
    [
      text(say("step"), (row) => row.step),
      time(say("response time"), (row) => row.latency_ns),
      { title: say("time"), value: (row) => row.at_ns, text: (row) => clock(row.at_ns / 1e9) },
      number(say("user"), (row) => row.user),
      number(say("code"), (row) => row.code),
      text(say("cause"), (row) => row.cause ?? "–"),
      text(say("trace ID"), (row) => row.trace ?? "–"),
      { title: say("where the time went"), value: () => null, left: true, text: chainText, cell: chainBar },
    ],
    summary.slowest ?? [],
    say("Filter"),
  );
}

function errors(): HTMLElement | null {
  const shown = table<any>(
    say("Errors by step and cause"),
    [
      text(say("step"), (row) => row.step),
      text(say("cause"), (row) => tell(row.text)),
      text(say("blame"), (row) => tell(row.blame)),
      number(say("count"), (row) => row.count),
      { title: say("share"), value: (row) => row.share, text: (row) => share(row.share) },
      text(say("example"), (row) => (row.example ? `${clock(row.example.at_ns / 1e9)} ${tell(row.example.detail)}` : "–")),
    ],
    summary.errors,
    say("Filter"),
  );
  const piece = (title: string, of: any) => of && element("div", {}, element("span", {}, title), element("pre", {}, of.text ?? of.hex ?? ""));
  const evidence = summary.failures.slice(0, 20).map((it) =>
    element(
      "details",
      {},
      element("summary", {}, `${it.step} · ${it.cause} · ${clock(it.at_ns / 1e9)} · ${tell(it.detail)}`),
      piece(say("sent"), it.evidence?.sent),
      piece(say("received"), it.evidence?.received),
    ),
  );
  return section("errors", say("Errors"), shown, evidence.length > 0 && element("div", {}, ...evidence));
}

function connections(): HTMLElement | null {
  return section("connections", say("Connections"), funnel(summary.stages), told(data.tables.stages, say("Connection stages")), told(data.tables.residence, say("Ended connections")));
}

function facts(rows: [string, string | null | undefined][]): HTMLElement {
  const list = element("dl");
  for (const [name, value] of rows) if (value) list.append(element("dt", {}, say(name)), element("dd", {}, value));
  return list;
}

function environment(): HTMLElement | null {
  const { run, host } = summary;
  const machine = [host.hostname, host.os, host.kernel && `Linux ${host.kernel}`, host.cpu_model, host.cores_usable && `${host.cores_usable} ${say("cores")}`, bytes(host.memory_bytes)];
  return section(
    "run",
    say("Run"),
    facts([
      ["start time", run.started],
      ["targets", run.targets.join(", ")],
      ["network", (summary.networks ?? []).map((it) => `${it.session}: ${it.network}`).join(" · ")],
      ["host", machine.filter(Boolean).join(" · ")],
      ["version", `throng ${run.throng_version}${run.throng_commit ? ` (${run.throng_commit})` : ""}`],
      ["seed", String(run.seed)],
      ["command", run.command.join(" ")],
    ]),
    element("h2", {}, say("Rerun")),
    element("pre", {}, `throng rerun ${run.directory ?? "RUN"}`),
    data.scenario !== "" && element("details", {}, element("summary", {}, say("Scenario")), element("pre", {}, data.scenario)),
  );
}

function setTheme(theme: string): void {
  document.documentElement.dataset.theme = theme;
}

function overTime(): HTMLElement | null {
  const button = (sign: string, name: string, act: () => void) => {
    const made = element("button", { type: "button", "aria-label": say(name), title: say(name) }, sign);
    made.addEventListener("click", act);
    return made;
  };
  const buttons = [
    button("+", "Zoom in", () => zoom(0.5, 0)),
    button("−", "Zoom out", () => zoom(2, 0)),
    button("‹", "Earlier", () => zoom(1, -0.5)),
    button("›", "Later", () => zoom(1, 0.5)),
    button(say("Reset zoom"), "Reset zoom", zoomOut),
  ];
  return section(
    "time",
    say("Over time"),
    element("div", { class: "bar" }, ...buttons, element("span", {}, say("Drag in a chart to zoom; double-click to reset. Keys: + and − zoom, ← and → move, 0 resets."))),
    panel.element,
    noted,
  );
}

function distribution(): HTMLElement | null {
  return section(
    "percentiles",
    say("Percentiles"),
    element(
      "div",
      { class: "charts" },
      percentiles(say("response time"), [{ label: say("all steps"), pairs: series.curve }, ...series.steps.slice(0, 6).map((it) => ({ label: stepName(it.step), pairs: it.curve }))], micros),
      heat(say("Heat map: distribution of response times over time"), series.heat.cells, series.heat.points, series.width_s, micros),
    ),
  );
}

/** All parts of the page by name, in order. */
const PARTS: Record<string, () => HTMLElement | null> = {
  header,
  notices,
  controls: () => (controls ? (standing ??= controls()) : null),
  capacity: () => capacity(summary.capacity),
  "gave-way": () => gaveWay(summary.gave_way),
  cards,
  stability: () => stability(summary.stability),
  findings: () => findings(summary.findings),
  events: () => events(summary.events, data.tables.around),
  first,
  time: overTime,
  population: () => population(data.picture, data.live === true),
  steps: byStep,
  percentiles: distribution,
  tables: allTables,
  errors,
  connections,
  audits: () => audits(data),
  sources: () => monitors(data),
  run: environment,
};

/** Makes the controls of a live page, and the controls as made in the current language. */
let controls: (() => HTMLElement) | null = null;
let standing: HTMLElement | null = null;

const part = (name: string): HTMLElement => element("div", { class: "part", "data-part": name }, PARTS[name]());

function draw(): void {
  forget(page);
  [panel, stepPanel] = [new Panel(), new Panel()];
  document.title = `${summary.run.name} · throng`;
  page.replaceChildren(
    ...Object.keys(PARTS).map(part),
  );
  drawTimes();
  drawSteps();
}

/** Draws some parts again, except parts in which text is selected. */
function again(names: string[]): void {
  const selection = getSelection();
  for (const name of names) {
    const holder = page.querySelector<HTMLElement>(`[data-part="${name}"]`);
    const isMarked = selection && !selection.isCollapsed && selection.containsNode(holder!, true);
    if (holder && !isMarked) patch(holder, part(name), forget);
  }
}

/** Shows a run. `more` makes the controls of a run that goes on. */
export function show(told: Data, more?: () => HTMLElement): void {
  data = told;
  ({ summary, series } = told);
  learn(told.renderings);
  const kept = data.live ? controls : null;
  if (more || !kept) standing = null;
  controls = more ?? kept;
  // So that the figures can be inspected with the browser's developer tools.
  Object.assign(window, { throng: data });
  draw();
}

/** The figures of one second, as the server sends them. */
export interface Second {
  at: number;
  seconds: number;
  missed: number;
  figures: Record<string, number | null>;
  times: Record<string, number | null>;
  errors: [string, string, number][];
  stages: [string, number | null][];
  renderings: Record<string, string>;
  step_at: number;
  /** A step's number, its ok and failed attempts, and its times in the order of `step_times`. */
  steps: number[][];
}

/** Puts a second into its place. It is sent again when more of its figures are known. */
export function append(told: Second): void {
  const put = (column: Values, value: number | null) => {
    while (column.length < told.at) column.push(null);
    column[told.at] = value;
  };
  [data.seconds, data.missed] = [told.seconds, told.missed];
  learn(told.renderings);
  for (const [name, value] of Object.entries(told.figures)) put((series[name] ??= []), value);
  for (const [name, value] of Object.entries(told.times)) put((series.times[name] ??= []), value);
  for (const [cause, text] of told.errors) {
    if (!series.errors.some((it) => it.cause === cause)) series.errors.push({ cause, text, count: Array(told.at).fill(0) });
  }
  for (const it of series.errors) put(it.count, told.errors.find(([cause]) => cause === it.cause)?.[2] ?? 0);
  for (const [stage] of told.stages) {
    if (!series.stages.some((it) => it.stage === stage)) series.stages.push({ stage, p99: Array(told.at).fill(null) });
  }
  for (const it of series.stages) put(it.p99, told.stages.find(([stage]) => stage === it.stage)?.[1] ?? null);
  const columns = ["ok", "failed", ...(series.step_times as string[])];
  for (const [step, ...values] of told.steps) {
    const own = stepOf(step, columns);
    const at = own.at.at(-1) === told.step_at ? own.at.length - 1 : own.at.push(told.step_at) - 1;
    columns.forEach((name, index) => (own[name][at] = values[index]));
  }
}

function stepOf(step: number, columns: string[]): StepSeries {
  const known = series.steps.find((it) => it.step === step);
  if (known) return known;
  const made = { step, at: [], curve: [], ...Object.fromEntries(columns.map((name) => [name, []])) } as unknown as StepSeries;
  series.steps.push(made);
  series.steps.sort((one, other) => one.step - other.step);
  return made;
}

/** Draws what each second changes. */
export function drawn(): void {
  const badge = page.querySelector(".badge");
  if (badge) setBadge(badge);
  if (page.querySelectorAll("#by-step option").length !== series.steps.length) again(["steps"]);
  if ((data.missed ?? 0) > 0) again(["notices"]);
  drawTimes();
  drawSteps();
}

/** What the tables and the percentile charts show. */
export interface Figures {
  summary: Summary;
  requests?: boolean;
  renderings: Record<string, string>;
  tables: Data["tables"];
  curve: [number, number][];
  curves: [number, [number, number][]][];
  heat: { points: number; cells: number[] };
  picture: Picture | null;
}

/** How often the parts that are slow to draw are drawn, in seconds. */
const SLOW_S = 5;
let slowAt = -SLOW_S;

export function tables(told: Figures): void {
  data.summary = summary = told.summary;
  data.requests = told.requests;
  data.tables = told.tables;
  learn(told.renderings);
  series.curve = told.curve;
  series.heat = told.heat;
  data.picture = told.picture;
  for (const [step, curve] of told.curves) {
    const own = series.steps.find((it) => it.step === step);
    if (own) own.curve = curve;
  }
  if (document.hidden) return;
  again(["cards", "gave-way", "stability", "findings", "events", "first", "population", "tables", "errors", "connections", "sources"]);
  if (lasted() >= slowAt + SLOW_S) {
    slowAt = lasted();
    again(["percentiles"]);
  }
}

/** Whether the page still receives figures. */
export function connected(is: boolean): void {
  if (isConnected === is) return;
  isConnected = is;
  const badge = page.querySelector(".badge");
  if (badge) setBadge(badge);
}
