// Curves on one time axis: they share the cursor and the zoom.

import uPlot from "uplot";
import { element } from "./dom";
import { clock } from "./units";
import { say } from "./words";

/** Told apart by people who do not see red and green alike (Okabe and Ito). */
export const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c6d1f", "#7f7f7f"];

export interface Line {
  label: string;
  values: (number | null)[];
  colour?: string;
  dash?: number[];
  fill?: boolean;
}

export interface Chart {
  title: string;
  lines: Line[];
  /** How a value is told, and how short it is on the axis. */
  unit: (value: number) => string;
  axis?: (value: number) => string;
  logarithmic?: boolean;
}

/** When it was, and what. */
export interface Mark {
  at_s: number;
  text: string;
  phase: boolean;
}

const HEIGHT = 210;
/** Seconds between the ticks of the time axis. */
const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
const all = new Set<uPlot>();
/** Those with an axis of their own. */
const apart = new Set<uPlot>();
const sync = uPlot.sync("time");
let axisColour = "";
let gridColour = "";

function colours(): void {
  const style = getComputedStyle(document.documentElement);
  axisColour = style.getPropertyValue("--quiet").trim();
  gridColour = style.getPropertyValue("--line").trim();
}

/** Draws all anew, as after a change of the theme. */
export function redraw(): void {
  colours();
  [...all, ...apart].forEach((chart) => chart.redraw(false, true));
}

export function zoomOut(): void {
  all.forEach((chart) => {
    const times = chart.data[0];
    chart.setScale("x", { min: times[0], max: times[times.length - 1] });
  });
}

/** A chart with its title, legend and a text for whoever does not see it. */
export function chart(times: number[], wanted: Chart, marks: Mark[]): HTMLElement | null {
  const lines = wanted.lines.filter((line) => line.values.some((value) => value !== null && value !== 0));
  if (lines.length === 0) return null;
  if (axisColour === "") colours();
  const unit = (value: number | null | undefined) => (value == null ? "–" : wanted.unit(value));
  const series: uPlot.Series[] = [
    { label: say("at"), value: (_, value) => (value == null ? "–" : clock(value)) },
    ...lines.map((line, at) => {
      const colour = line.colour ?? COLOURS[at % COLOURS.length];
      return {
        label: line.label,
        stroke: colour,
        width: 1.5,
        dash: line.dash,
        fill: line.fill ? `${colour}1f` : undefined,
        points: { show: times.length < 3 },
        spanGaps: false,
        value: (_: uPlot, value: number | null) => unit(value),
      };
    }),
  ];
  const axis = { stroke: () => axisColour, grid: { stroke: () => gridColour, width: 1 }, ticks: { stroke: () => gridColour, width: 1 } };
  const options: uPlot.Options = {
    width: 600,
    height: HEIGHT,
    cursor: { sync: { key: sync.key, setSeries: false }, drag: { x: true, y: false }, points: { size: 6 } },
    scales: {
      x: { time: false },
      y: wanted.logarithmic
        ? { distr: 3, range: (_, low, high) => range(low, high) }
        : { range: (_, __, high) => [0, high > 0 ? high * 1.08 : 1] },
    },
    axes: [
      { ...axis, incrs: TIMES, values: (_, values) => values.map((value) => clock(value)), size: 30, space: 70 },
      { ...axis, values: (_, values) => values.map((value) => (value == null ? "" : (wanted.axis ?? wanted.unit)(value))), size: 68 },
    ],
    series,
    legend: { live: true },
    hooks: { drawClear: [(plot) => drawMarks(plot, marks)] },
    plugins: [together()],
  };
  const holder = element("div", { class: "plot", role: "img", "aria-label": `${wanted.title}. ${told(lines, wanted)}` });
  const figure = element("figure", {}, element("figcaption", {}, wanted.title), holder);
  const data = [times, ...lines.map((line) => line.values)] as uPlot.AlignedData;
  const plot = new uPlot(options, data, holder);
  all.add(plot);
  new ResizeObserver(() => {
    const width = Math.floor(holder.clientWidth);
    if (width > 0 && width !== plot.width) plot.setSize({ width, height: HEIGHT });
  }).observe(holder);
  return figure;
}

/** Takes a chart out of those that move together. */
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

/** Decades around the values. */
function range(low: number | null, high: number | null): [number, number] {
  if (low == null || high == null || low <= 0) return [1, 1000];
  return [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high * 1.01))];
}

/** Zooming one zooms all. */
function together(): uPlot.Plugin {
  return {
    hooks: {
      setScale: (plot, key) => {
        if (key !== "x") return;
        const { min, max } = plot.scales.x;
        all.forEach((other) => {
          const same = other.scales.x.min === min && other.scales.x.max === max;
          if (other !== plot && !same) other.setScale("x", { min: min!, max: max! });
        });
      },
    },
  };
}

function drawMarks(plot: uPlot, marks: Mark[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.lineWidth = 1;
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  let free = -Infinity;
  for (const mark of marks) {
    const x = Math.round(plot.valToPos(mark.at_s, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = ctx.fillStyle = axisColour;
    ctx.setLineDash(mark.phase ? [2, 4] : [6, 3]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const width = ctx.measureText(mark.text).width;
    if (x > free && x + width < bbox.left + bbox.width) {
      ctx.fillText(mark.text, x + 4 * devicePixelRatio, bbox.top + 11 * devicePixelRatio);
      free = x + width + 12 * devicePixelRatio;
    }
  }
  ctx.restore();
}

/** The range of each line in words. */
function told(lines: Line[], wanted: Chart): string {
  return lines
    .map((line) => {
      const values = line.values.filter((value): value is number => value !== null);
      const [low, high] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
      return `${line.label}: ${wanted.unit(low)} – ${wanted.unit(high)}`;
    })
    .join("; ");
}

/** Percentiles: the rarer, the further right, as HdrHistogram draws them. */
export function percentiles(title: string, curves: { label: string; pairs: [number, number][] }[], unit: (us: number) => string): HTMLElement | null {
  const shown = curves.filter((curve) => curve.pairs.length > 1);
  if (shown.length === 0) return null;
  colours();
  const x = (longer: number) => -Math.log10(longer);
  const places = [...new Set(shown.flatMap((curve) => curve.pairs.map(([longer]) => x(longer))))].sort((a, b) => a - b);
  const columns = shown.map((curve) => {
    const known = new Map(curve.pairs.map(([longer, us]) => [x(longer), us]));
    return places.map((place) => known.get(place) ?? null);
  });
  const holder = element("div", { class: "plot", role: "img", "aria-label": title });
  const axis = { stroke: () => axisColour, grid: { stroke: () => gridColour, width: 1 }, ticks: { stroke: () => gridColour, width: 1 } };
  const percent = (place: number) => `${Number((100 - 100 * 10 ** -place).toFixed(Math.max(0, Math.ceil(place) - 1)))} %`;
  const plot = new uPlot(
    {
      width: 600,
      height: 260,
      scales: { x: { time: false }, y: { distr: 3, range: (_, low, high) => range(low, high) } },
      axes: [
        { ...axis, values: (_, values) => values.map((value) => (Number.isInteger(value) ? percent(value) : "")), size: 30, space: 60 },
        { ...axis, values: (_, values) => values.map((value) => (value == null ? "" : unit(value))), size: 68 },
      ],
      cursor: { drag: { x: false, y: false } },
      series: [
        { label: say("share"), value: (_, value) => (value == null ? "–" : percent(value)) },
        ...shown.map((curve, at) => ({
          label: curve.label,
          stroke: COLOURS[at % COLOURS.length],
          width: 1.5,
          spanGaps: true,
          value: (_: uPlot, value: number | null) => (value == null ? "–" : unit(value)),
        })),
      ],
    },
    [places, ...columns] as uPlot.AlignedData,
    holder,
  );
  apart.add(plot);
  new ResizeObserver(() => plot.setSize({ width: Math.floor(holder.clientWidth), height: 260 })).observe(holder);
  return element("figure", {}, element("figcaption", {}, title), holder);
}

/** Darker where more attempts were; rows are quarters of a power of two of microseconds. */
export function heat(title: string, cells: number[], points: number, width_s: number, unit: (us: number) => string): HTMLElement | null {
  if (cells.length === 0) return null;
  let [columns, low, high, most] = [0, Infinity, 0, 0];
  for (let at = 0; at < cells.length; at += 3) {
    columns = Math.max(columns, cells[at] + 1);
    low = Math.min(low, cells[at + 1]);
    high = Math.max(high, cells[at + 1]);
    most = Math.max(most, cells[at + 2]);
  }
  const rows = high - low + 1;
  const canvas = element("canvas", { role: "img", "aria-label": title });
  canvas.width = columns;
  canvas.height = rows;
  const ctx = canvas.getContext("2d")!;
  const end = columns * points * width_s;
  for (let at = 0; at < cells.length; at += 3) {
    // Rare ones are to be seen, too.
    ctx.fillStyle = `rgba(0, 114, 178, ${0.12 + 0.88 * (Math.log1p(cells[at + 2]) / Math.log1p(most))})`;
    ctx.fillRect(cells[at], high - cells[at + 1], 1, 1);
  }
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => element("span", {}, unit(2 ** ((high + 1 - share * rows) / 4))));
  const times = [0, 0.25, 0.5, 0.75, 1].map((share) => element("span", {}, clock(share * end)));
  return element(
    "figure",
    {},
    element("figcaption", {}, title),
    element("div", { class: "heat" }, element("div", { class: "rows" }, ...ticks), canvas, element("div", { class: "columns" }, ...times)),
  );
}
