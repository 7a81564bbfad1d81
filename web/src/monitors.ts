// Metrics of other sources: the exporters that the scenario names.

import type { Chart } from "./charts";
import type { Column as Values, Data, Monitored } from "./data";
import { element, section, table } from "./dom";
import { bytes, count, short } from "./units";
import { say, tell } from "./words";

/** Further metrics are only in the table. */
const CHARTS_MAX = 24;

const family = (name: string): string => name.split("{")[0];
const isBytes = (name: string): boolean => /_bytes(_total)?$/.test(family(name));

function figure(name: string, counter: boolean): (value: number | null) => string {
  return (value) => {
    if (value === null) return "–";
    const text = isBytes(name) ? bytes(value) : Math.abs(value) < 1e5 ? String(Number(value.toPrecision(4))) : short(value);
    return counter ? `${text}/s` : text;
  };
}

/** A reading while the run goes on: the mean of a point, sent again as more is read. */
export interface Reading {
  monitor: number;
  number: number;
  name: string;
  counter: boolean;
  at: number;
  value: number;
}

/** Puts readings into their places. */
export function read(data: Data, readings: Reading[]): void {
  for (const { monitor, number, name, counter, at, value } of readings) {
    let own = data.monitors.find((it) => it.monitor === monitor && it.number === number);
    if (!own) data.monitors.push((own = { monitor, number, name, counter, values: [] }));
    while (own.values.length < at) own.values.push(null);
    own.values[at] = value;
  }
}

/** Fits values to the time axis: a reading may arrive before or after its second. */
const fitted = (values: Values, length: number): Values => Array.from({ length }, (_, at) => values[at] ?? null);

/** A chart for each metric of each source, with a line for each of its series. */
export function monitorCharts(data: Data): Chart[] {
  const length = data.series.times.p50.length;
  const groups = new Map<string, Monitored[]>();
  for (const one of data.monitors) {
    const key = `${one.monitor} ${family(one.name)}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups.values()].slice(0, CHARTS_MAX).map((lines) => {
    const { name, counter, monitor } = lines[0];
    const source = data.summary.monitors[monitor];
    const where = source.machine ? `${source.name}, ${source.machine}` : source.name;
    const label = (own: string) => own.slice(family(own).length).replace(/^\{|\}$/g, "") || family(own);
    return {
      title: `${where} · ${family(name)}`,
      unit: figure(name, counter),
      axis: isBytes(name) ? bytes : short,
      gaps: true,
      lines: lines.map((line) => ({ label: label(line.name), values: fitted(line.values, length) })),
    };
  });
}

/** What was read from each source, and why readings failed. */
export function monitors(data: Data): HTMLElement | null {
  const tables = data.summary.monitors.map((source: any) => {
    const title = source.machine ? `${source.name}, ${source.machine}` : source.name;
    const number = (name: string, of: string) => ({
      title: say(name),
      value: (row: any) => row[of] as number | null,
      text: (row: any) => figure(row.name, row.counter)(row[of]),
    });
    const rows = table<any>(
      title,
      [{ title: say("series"), value: (row) => row.name, left: true }, number("mean", "mean"), number("min", "min"), number("max", "max"), number("last", "last")],
      source.series,
      say("Filter"),
    );
    const failed = source.failed > 0 && element("p", {}, `${title}: ${say("failed readings")}: ${count(source.failed)} / ${count(source.read + source.failed)}. ${tell(source.trouble ?? "")}`);
    return element("div", {}, rows, failed);
  });
  return section("sources", say("Other sources"), tables.length > 0 && element("div", {}, ...tables));
}
