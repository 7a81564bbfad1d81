// What each of several machines uses of its host over time.

import type { Chart, Line } from "./charts";
import type { Column as Values, Data } from "./data";
import { bytes, count, short } from "./units";
import { say } from "./words";

/** A chart for each figure, with a line for each machine. */
export function machineCharts(data: Data, seconds: (point: number) => number): Chart[] {
  const machines = data.series.machines;
  if (!machines || machines.rows.length === 0) return [];
  const length = data.series.times.p50.length;
  // A coarse point keeps its value until the next; a count is shown per second.
  const lines = (name: string, each?: (value: number) => number): Line[] =>
    machines.rows.map((row) => ({
      label: row.name as string,
      values: Array.from({ length }, (_, at) => {
        const point = Math.floor(at / machines.points);
        const value = (row[name] as Values)[point] ?? null;
        if (value === null || !each) return value;
        let time = 0;
        for (let part = point * machines.points; part < Math.min((point + 1) * machines.points, length); part += 1) time += seconds(part);
        return time < data.series.width_s / 2 ? null : each(value) / time;
      }),
    }));
  const same = (value: number) => value;
  const share = (value: number) => `${(value * 100).toFixed(0)} %`;
  const perSecond = (value: number) => `${bytes(value)}/s`;
  return [
    { title: say("Cores used by throng, per machine"), unit: (value) => Number(value.toPrecision(3)).toString(), lines: lines("cpu_ns", (ns) => ns / 1e9) },
    { title: say("Host CPU load, per machine"), unit: share, lines: lines("host_cpu") },
    { title: say("Memory used by throng, per machine"), unit: bytes, lines: lines("memory_bytes") },
    { title: say("Received, per machine"), unit: perSecond, axis: bytes, lines: lines("bytes_in", same) },
    { title: say("Sent, per machine"), unit: perSecond, axis: bytes, lines: lines("bytes_out", same) },
    { title: say("Users, per machine"), unit: count, axis: short, lines: lines("users_online") },
  ];
}
