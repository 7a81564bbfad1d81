// The data of a page: the summary as in `throng report --json`, and figures over time.

/** A column: one number for each point in time; null if there is none. */
export type Column = (number | null)[];

export interface Times {
  count: number;
  min_ns: number | null;
  mean_ns: number | null;
  p50_ns: number | null;
  p90_ns: number | null;
  p95_ns: number | null;
  p99_ns: number | null;
  p99_9_ns: number | null;
  max_ns: number | null;
}

export interface Row {
  name: string;
  kind: string;
  begun: number;
  count: number;
  ok: number;
  failed: number;
  ok_per_s: number;
  ok_after?: number;
  /** Null if nothing was timed. */
  latency: Times | null;
  service?: Times | null;
}

export interface ErrorRow {
  step: string;
  cause: string;
  text: string;
  blame: string;
  count: number;
  share: number | null;
  example: { at_ns: number; detail: string } | null;
}

export interface Threshold {
  text: string;
  verdict: string;
  figure: number | null;
  largest_of?: number | null;
  unit: string;
}

export interface Phase {
  name: string;
  measured: boolean;
  lasted_ns: number;
  count: number;
  failed: number;
  ok_per_s: number;
  users_online_max: number;
  latency: Times | null;
}

// Only what the page reads; docs/json.md documents all of it.
/** What was found in the run, with its evidence; see docs/why.md. */
export interface Finding {
  code: string;
  level: string;
  title: string;
  text: string;
  when: { from_s: number; to_s: number; series: string[] };
  evidence: { text: string; when: { from_s: number; to_s: number } }[];
  excluded: { cause: string; how: string }[];
  next: string;
}

/** Whether a long load stayed as it was; see docs/json.md. */
export interface Stability {
  verdict: "stable" | "unstable" | "too-short";
  measures: { text: string; trend: string }[];
}

export interface Summary {
  run: Record<string, any>;
  outcome: { exit_code: number; headline: string; reasons: string[]; valid: boolean; invalid_reasons: unknown[]; warnings: { text: string }[] } | null;
  total: Row;
  steps: Row[];
  transactions: Row[];
  errors: ErrorRow[];
  thresholds: Threshold[];
  phases: Phase[];
  stages: any[];
  networks?: { session: string; network: string }[];
  residence: any[];
  machines: any[];
  users: Record<string, number>;
  connections: Record<string, number>;
  generator: Record<string, any>;
  host: Record<string, any>;
  lasted_ns: number;
  measured_ns: number;
  received_bytes: number;
  sent_bytes: number;
  failures: any[];
  findings?: Finding[] | null;
  stability?: Stability | null;
  gave_way?: { text: string }[];
  record: Record<string, any>;
  [name: string]: any;
}

/** What a load is at, as `throng control status` shows it. */
export interface Status {
  load: string;
  phase: string;
  users: number | null;
  per_second: number | null;
  paused: boolean;
}

export interface StepSeries {
  step: number;
  at: number[];
  ok: Column;
  failed: Column;
  curve: [number, number][];
  [quantile: string]: any;
}

export interface Series {
  width_s: number;
  step_width_s: number;
  times: Record<string, Column>;
  errors: { cause: string; text: string; count: Column }[];
  stages: { stage: string; p99: Column }[];
  steps: StepSeries[];
  curve: [number, number][];
  heat: { points: number; cells: number[] };
  /** If there are several machines: each with its name and its columns. Not on a live page. */
  machines?: { points: number; rows: Record<string, any>[] };
  [column: string]: any;
}

/** The states of the population; a letter is a state, a capital where at least half of the users are in it. */
export interface Picture {
  users_per_cell: number;
  cells: number;
  cells_per_row: number;
  width_s: number;
  /** From the start of the run: the worst of each row, as `12O3a`. */
  columns: string[];
  /** By column, the most users in each state. */
  most: number[][];
  /** The last second: its cells, and its users in each state. */
  now: string;
  users: number[];
}

/** A series of another source; its values are at the points of the run's own. */
export interface Monitored {
  monitor: number;
  number: number;
  name: string;
  counter: boolean;
  values: Column;
}

/** A word in English and Chinese, or one text in both. */
export type Word = string | [string, string];

export type Cell = Word | number | null;

/** A table as throng makes it; a figure is in the unit of its column. */
export interface Table {
  columns: { head: Word; words: boolean; unit: string | null }[];
  rows: Cell[][];
}

export interface Told {
  at_ns: number;
  kind: string;
  text: string;
}

/** A figure of two runs. */
export interface Figure {
  figure: string;
  unit: string;
  baseline: number | null;
  value: number | null;
  change: { by: number; low: number | null; high: number | null } | null;
  verdict: string | null;
}

/** The highest load a run found, and its 95 % interval. */
export interface Carried {
  carries: number | null;
  low: number | null;
  high: number | null;
  unit: string;
}

/** Runs compared with the first of them. */
export interface Compared {
  renderings: Record<string, string>;
  comparison: {
    comparisons: {
      run: { directory: string | null };
      unlike: string[];
      named: number;
      capacity: { baseline: Carried; value: Carried; verdict: string } | null;
      rows: { name: string | null; kind: string; figures: Figure[] }[];
    }[];
  };
  runs: { name: string; lasted_ns: number; series: Series }[];
}

export interface Data {
  language: string;
  /** On a page that a server serves: what the page asks it for. */
  connect?: string;
  /** A comparison of several runs; the page then has no other data. */
  compared?: Compared;
  /** Whether the run goes on, how many of its seconds have started, and how many lines are missing. */
  live?: boolean;
  seconds?: number;
  missed?: number;
  /** What the loads of a live run are at. */
  status?: Status[];
  /** The live run has a run directory. */
  recorded?: boolean;
  summary: Summary;
  /** Whether every attempt of the run is a request. */
  requests?: boolean;
  /** Sentences in the summary and the events, with their Chinese translations. */
  renderings: Record<string, string>;
  /** By name; see `crates/throng-results/src/page/tables.rs`. */
  tables: Record<string, Table>;
  names: string[];
  series: Series;
  picture?: Picture | null;
  monitors: Monitored[];
  events: Told[];
  scenario: string;
}

export function read(): Data {
  return JSON.parse(document.getElementById("data")!.textContent!) as Data;
}
