// Curves on one time axis: they share the cursor and the zoom.

import uPlot from "uplot";
import { element } from "./dom";
import { clock } from "./units";
import { say } from "./words";

/** Names of colors of the style, used in turn. They follow Okabe and Ito, so that color-blind readers
 * can tell them apart, with a contrast of 3 to 1 or better in both themes. */
export const COLOURS = ["--blue", "--orange", "--green", "--red", "--pink", "--sky", "--olive", "--grey"];

export interface Line {
  label: string;
  values: (number | null)[];
  /** The name of a color of the style. */
  colour?: string;
  dash?: number[];
  width?: number;
  fill?: boolean;
}

export interface Chart {
  title: string;
  lines: Line[];
  /** How a value is written, and how it is written on the axis. */
  unit: (value: number) => string;
  axis?: (value: number) => string;
  logarithmic?: boolean;
  /** Lines connect values across points that have none. */
  gaps?: boolean;
  /** Names of the series that it shows: findings about them mark it. */
  shows?: string[];
}

/** A moment on the time axis, and its text. */
export interface Mark {
  at_s: number;
  text: string;
  phase: boolean;
  /** For a part of the time: its end, and the series that it is about. */
  to_s?: number;
  about?: string[];
}

const HEIGHT = 210;
/** Seconds between the ticks of the time axis. */
const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
const all = new Set<uPlot>();
/** Charts with an axis of their own. */
const apart = new Set<uPlot>();
const sync = uPlot.sync("time");
/** Colors of the style in the current theme. */
const painted = new Map<string, string>();

function paint(name: string): string {
  const known = painted.get(name);
  if (known) return known;
  const found = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  painted.set(name, found);
  return found;
}

const axis = {
  stroke: () => paint("--quiet"),
  grid: { stroke: () => paint("--line"), width: 1 },
  ticks: { stroke: () => paint("--line"), width: 1 },
};

/** The line samples in a legend; they follow the theme without a redraw. */
function samples(lines: { colour?: string; dash?: number[] }[]): uPlot.Legend.Markers {
  const of = (at: number) => lines[at - 1];
  return {
    width: 2,
    stroke: (_, at) => `var(${colourOf(of(at)?.colour, at - 1)})`,
    dash: (_, at) => (of(at)?.dash ? "dotted" : "solid"),
  };
}

const colourOf = (colour: string | undefined, at: number): string => colour ?? COLOURS[at % COLOURS.length];

/** Draws all charts again, for example after a change of the theme. */
export function redraw(): void {
  painted.clear();
  [...all, ...apart].forEach((chart) => chart.redraw(false, true));
}

/** Removes all charts, for example before another page is shown. */
export function forgetAll(): void {
  for (const plots of [all, apart]) {
    plots.forEach((plot) => plot.destroy());
    plots.clear();
  }
  followers.clear();
}

export function zoomOut(): void {
  all.forEach((chart) => {
    const times = chart.data[0];
    chart.setScale("x", { min: times[0], max: times[times.length - 1] });
  });
}

/** What else follows the zoom. */
const followers = new Set<(min: number, max: number) => void>();

/** Calls `follow` when the zoom changes, as long as `figure` is on the page. */
export function follows(figure: Element, follow: (min: number, max: number) => void): void {
  const one = (min: number, max: number) => (figure.isConnected ? follow(min, max) : void followers.delete(one));
  followers.add(one);
  const shown = zoomed();
  if (shown) follow(shown.min, shown.max);
}

/** The part of the time that all charts show; null if they show all of it. */
function zoomed(): { min: number; max: number } | null {
  const first = [...all][0];
  return first && isZoomed(first) ? { min: first.scales.x.min!, max: first.scales.x.max! } : null;
}

/** Shows this part of the time, with some of what is around it. */
export function zoomTo(from: number, to: number): void {
  const times = [...all][0]?.data[0];
  if (!times || times.length < 2) return;
  const around = Math.max((to - from) * 0.25, 2);
  const [min, max] = [Math.max(from - around, times[0]), Math.min(to + around, times[times.length - 1])];
  if (max > min) all.forEach((chart) => chart.setScale("x", { min, max }));
}

/** Zooms: the part shown gets `by` times as long around its middle, and moves by a share of its length. */
export function zoom(by: number, move: number): void {
  const first = [...all][0];
  if (!first) return;
  const times = first.data[0];
  const [begin, end] = [times[0], times[times.length - 1]];
  const [from, to] = [first.scales.x.min ?? begin, first.scales.x.max ?? end];
  const length = Math.min(Math.max((to - from) * by, Math.min(2, end - begin)), end - begin);
  const middle = (from + to) / 2 + move * (to - from);
  const min = Math.min(Math.max(middle - length / 2, begin), end - length);
  all.forEach((chart) => chart.setScale("x", { min, max: min + length }));
}

/** Whether only a part of the time is shown. */
function isZoomed(plot: uPlot): boolean {
  const times = plot.data[0];
  const { min, max } = plot.scales.x;
  return min != null && max != null && times.length > 1 && (min > times[0] || max < times[times.length - 1]);
}

/** A chart on the page, which may get more figures. */
interface Drawn {
  figure: HTMLElement;
  update: (times: number[], lines: Line[], marks: Mark[]) => void;
}

/** What keys do while the charts have the focus. */
const KEYS: Record<string, () => void> = {
  "+": () => zoom(0.5, 0),
  // The same key without Shift.
  "=": () => zoom(0.5, 0),
  "-": () => zoom(2, 0),
  ArrowLeft: () => zoom(1, -0.5),
  ArrowRight: () => zoom(1, 0.5),
  "0": zoomOut,
};

/** A group of charts. When there are more figures, the charts are updated, not replaced. */
export class Panel {
  readonly element = element("div", { class: "charts", role: "group", tabindex: "0", "aria-label": say("Charts over time"), "aria-keyshortcuts": "+ - ArrowLeft ArrowRight 0" });
  private charts = new Map<string, Drawn>();

  constructor() {
    this.element.addEventListener("keydown", (event) => {
      const act = event.ctrlKey || event.altKey || event.metaKey ? undefined : KEYS[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    // A click gives the charts the focus, so that the keys work.
    this.element.addEventListener("mousedown", () => this.element.focus({ preventScroll: true }));
  }

  show(times: number[], wanted: Chart[], marks: Mark[]): void {
    const figures: HTMLElement[] = [];
    const left = new Map(this.charts);
    for (const one of wanted) {
      const own = marks.filter((mark) => !mark.about || mark.about.some((name) => one.shows?.includes(name)));
      const lines = one.lines.filter((line) => line.values.some((value) => value !== null && (one.gaps || value !== 0)));
      if (lines.length === 0) continue;
      const key = JSON.stringify([one.title, lines.map((line) => line.label)]);
      const there = this.charts.get(key);
      const drawn = there ?? chart(times, { ...one, lines }, own);
      there?.update(times, lines, own);
      this.charts.set(key, drawn);
      left.delete(key);
      figures.push(drawn.figure);
    }
    for (const [key, drawn] of left) {
      forget(drawn.figure);
      this.charts.delete(key);
    }
    const same = figures.length === this.element.children.length && figures.every((it, at) => it === this.element.children[at]);
    if (!same) this.element.replaceChildren(...figures);
  }
}

/** A chart with its title, its legend, and a text for screen readers. */
function chart(times: number[], wanted: Chart, shown: Mark[]): Drawn {
  const { lines } = wanted;
  let marks = shown;
  // Without a cursor the legend shows only names.
  const unit = (value: number | null | undefined) => (value == null ? "" : wanted.unit(value));
  const series: uPlot.Series[] = [
    { label: say("time"), value: (_, value) => (value == null ? "" : clock(value)) },
    ...lines.map((line, at) => {
      const colour = colourOf(line.colour, at);
      return {
        label: line.label,
        stroke: () => paint(colour),
        width: line.width ?? 1.5,
        dash: line.dash,
        fill: line.fill ? () => `${paint(colour)}1f` : undefined,
        // A line needs two adjacent values: single values are drawn as points.
        points: {
          show: (plot: uPlot, at: number) => (plot.data[at] as Line["values"]).filter((value) => value != null).length < 3,
          filter: (plot: uPlot, at: number, show: boolean) => (show || wanted.gaps ? null : alone(plot.data[at] as Line["values"])),
        },
        spanGaps: wanted.gaps ?? false,
        value: (_: uPlot, value: number | null) => unit(value),
      };
    }),
  ];
  const options: uPlot.Options = {
    width: 600,
    height: HEIGHT,
    cursor: { sync: { key: sync.key, setSeries: false }, drag: { x: true, y: false }, points: { size: 6 } },
    scales: {
      x: { time: false },
      y: wanted.logarithmic
        ? { distr: 3, range: (_, low, high) => range(low, high) }
        : { range: (_, low, high) => [Math.min(0, (low ?? 0) * 1.08), (high ?? 0) > 0 ? high! * 1.08 : 1] },
    },
    axes: [
      { ...axis, incrs: TIMES, values: (_, values) => values.map((value) => clock(value)), size: 30, space: 70 },
      { ...axis, ...(wanted.logarithmic ? decades() : {}), values: (_, values) => values.map((value) => (value == null ? "" : (wanted.axis ?? wanted.unit)(value))), size: 68 },
    ],
    series,
    legend: { live: true, markers: samples(lines) },
    hooks: { drawAxes: [(plot) => drawMarks(plot, marks)] },
    plugins: [together()],
  };
  const name = (lines: Line[]) => `${wanted.title}. ${told(lines, wanted)}`;
  const holder = element("div", { class: "plot", role: "img", "aria-label": name(lines) });
  const figure = element("figure", {}, element("figcaption", {}, wanted.title), holder);
  const columns = (times: number[], lines: Line[]) => [times, ...lines.map((line) => line.values)] as uPlot.AlignedData;
  // A new chart takes over the zoom of the others.
  const shared = zoomed();
  const plot = new uPlot(options, columns(times, lines), holder);
  all.add(plot);
  if (shared) plot.setScale("x", shared);
  new ResizeObserver(() => {
    const width = Math.floor(holder.clientWidth);
    if (width > 0 && width !== plot.width) plot.setSize({ width, height: HEIGHT });
  }).observe(holder);
  const update = (times: number[], lines: Line[], more: Mark[]) => {
    marks = more;
    holder.setAttribute("aria-label", name(lines));
    const { min, max } = plot.scales.x;
    const stays = isZoomed(plot);
    plot.setData(columns(times, lines), !stays);
    if (stays) plot.setScale("x", { min: min!, max: max! });
  };
  return { figure, update };
}

/** For a logarithmic axis: lines only at powers of ten. */
function decades(): uPlot.Axis {
  const filter = (_: uPlot, places: number[]) => places.map((place) => (Number.isInteger(Math.round(Math.log10(place) * 1e6) / 1e6) ? place : null));
  return { grid: { ...axis.grid, filter }, ticks: { ...axis.ticks, filter } };
}

/** Removes the charts of an element. */
export function forget(figure: Element): void {
  for (const plots of [all, apart]) {
    plots.forEach((plot) => {
      if (figure.contains(plot.root)) {
        plots.delete(plot);
        plot.destroy();
      }
    });
  }
}

/** The powers of ten around the values. */
function range(low: number | null, high: number | null): [number, number] {
  if (low == null || high == null || low <= 0) return [1, 1000];
  return [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high * 1.01))];
}

/** Zooming one chart zooms all. */
function together(): uPlot.Plugin {
  return {
    hooks: {
      setScale: (plot, key) => {
        if (key !== "x") return;
        const { min, max } = plot.scales.x;
        if (min == null || max == null) return;
        followers.forEach((follow) => follow(min, max));
        all.forEach((other) => {
          const same = other.scales.x.min === min && other.scales.x.max === max;
          if (other !== plot && !same) other.setScale("x", { min, max });
        });
      },
    },
  };
}

/** Indexes of the values without a neighbor, to which no line is drawn. */
export function alone(values: Line["values"]): number[] {
  const isThere = (at: number) => values[at] != null;
  return [...values.keys()].filter((at) => isThere(at) && !isThere(at - 1) && !isThere(at + 1));
}

/** Tints the part of the time that a mark is about. */
function band(plot: uPlot, mark: Mark): void {
  if (mark.to_s === undefined) return;
  const { ctx, bbox } = plot;
  const inside = (second: number) => Math.min(Math.max(plot.valToPos(second, "x", true), bbox.left), bbox.left + bbox.width);
  const [from, to] = [inside(mark.at_s), inside(mark.to_s)];
  ctx.globalAlpha = 0.13;
  ctx.fillStyle = paint("--orange");
  ctx.fillRect(from, bbox.top, Math.max(to - from, 1), bbox.height);
  ctx.globalAlpha = 1;
  ctx.fillStyle = paint("--quiet");
}

function drawMarks(plot: uPlot, marks: Mark[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.lineWidth = 1;
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.strokeStyle = ctx.fillStyle = paint("--quiet");
  [ctx.textAlign, ctx.textBaseline] = ["left", "alphabetic"];
  let free = -Infinity;
  marks.forEach((mark) => band(plot, mark));
  const shown = marks
    .map((mark) => ({ ...mark, x: Math.round(plot.valToPos(mark.at_s, "x", true)) }))
    .filter(({ x }) => x >= bbox.left && x <= bbox.left + bbox.width)
    .sort((one, other) => one.x - other.x);
  shown.forEach(({ x, ...mark }, at) => {
    ctx.setLineDash(mark.phase ? [2, 4] : [6, 3]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    // A name that would overlap the next mark is left out.
    const end = x + ctx.measureText(mark.text).width + 8 * devicePixelRatio;
    const next = shown.find((other, index) => index > at && other.x > x)?.x ?? bbox.left + bbox.width;
    if (x >= free && end < next) {
      ctx.fillText(mark.text, x + 4 * devicePixelRatio, bbox.top - 4 * devicePixelRatio);
      free = end;
    }
  });
  ctx.restore();
}

/** The range of each line as text. */
function told(lines: Line[], wanted: Chart): string {
  return lines
    .map((line) => {
      const values = line.values.filter((value): value is number => value !== null);
      const [low, high] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
      return `${line.label}: ${wanted.unit(low)} – ${wanted.unit(high)}`;
    })
    .join("; ");
}

/** Percentiles on a logarithmic axis, as HdrHistogram draws them. */
export function percentiles(title: string, curves: { label: string; pairs: [number, number][] }[], unit: (us: number) => string): HTMLElement | null {
  const shown = curves.filter((curve) => curve.pairs.length > 1);
  if (shown.length === 0) return null;
  const x = (longer: number) => -Math.log10(longer);
  const places = [...new Set(shown.flatMap((curve) => curve.pairs.map(([longer]) => x(longer))))].sort((a, b) => a - b);
  const columns = shown.map((curve) => {
    const known = new Map(curve.pairs.map(([longer, us]) => [x(longer), us]));
    return places.map((place) => known.get(place) ?? null);
  });
  const holder = element("div", { class: "plot", role: "img", "aria-label": title });
  const percent = (place: number) => `${Number((100 - 100 * 10 ** -place).toFixed(Math.max(0, Math.ceil(place) - 1)))} %`;
  const plot = new uPlot(
    {
      width: 600,
      height: 260,
      scales: { x: { time: false }, y: { distr: 3, range: (_, low, high) => range(low, high) } },
      axes: [
        { ...axis, values: (_, values) => values.map((value) => (Number.isInteger(value) ? percent(value) : "")), size: 30, space: 60 },
        { ...axis, ...decades(), values: (_, values) => values.map((value) => (value == null ? "" : unit(value))), size: 68 },
      ],
      cursor: { drag: { x: false, y: false } },
      legend: { markers: samples(shown.map(() => ({}))) },
      series: [
        { label: say("share"), value: (_, value) => (value == null ? "" : percent(value)) },
        ...shown.map((curve, at) => ({
          label: curve.label,
          stroke: () => paint(colourOf(undefined, at)),
          width: 1.5,
          spanGaps: true,
          value: (_: uPlot, value: number | null) => (value == null ? "" : unit(value)),
        })),
      ],
    },
    [places, ...columns] as uPlot.AlignedData,
    holder,
  );
  apart.add(plot);
  new ResizeObserver(() => plot.setSize({ width: Math.floor(holder.clientWidth), height: 260 })).observe(holder);
  return element("figure", { "data-anew": "" }, element("figcaption", {}, title), holder);
}
