// Numbers in a form that is easy to read. Times are given in nanoseconds or microseconds.

const digits = (value: number): number => (value >= 100 ? 0 : value >= 10 ? 1 : 2);

export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined) return "–";
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(digits(ns / 1e3))} µs`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(digits(ns / 1e6))} ms`;
  if (ns < 120e9) return `${(ns / 1e9).toFixed(digits(ns / 1e9))} s`;
  return clock(ns / 1e9);
}

export const micros = (us: number | null | undefined): string => duration(us == null ? us : us * 1e3);

/** A position on the time axis: `1:05`, `2:00:00`. */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const two = (value: number) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const rounded = Number.isInteger(value) || value >= 100 ? Math.round(value) : Number(value.toPrecision(3));
  return rounded.toLocaleString("en-US");
}

/** In short form, for an axis. */
export function short(value: number): string {
  const size = Math.abs(value);
  const scaled = (by: number, unit: string) => `${Number((value / by).toPrecision(3))}${unit}`;
  if (size >= 1e9) return scaled(1e9, "G");
  if (size >= 1e6) return scaled(1e6, "M");
  if (size >= 1e3) return scaled(1e3, "k");
  return String(Number(value.toPrecision(3)));
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (Math.abs(value) >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at === 0 ? Math.round(value) : value.toFixed(digits(value))} ${units[at]}`;
}

export function share(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const percent = value * 100;
  if (percent === 0) return "0 %";
  return percent < 0.01 ? "< 0.01 %" : `${Number(percent.toPrecision(3))} %`;
}
