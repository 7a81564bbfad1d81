// The distribution of response times over time, as colors; and what any such picture has around it.

import { follows } from "./charts";
import { element } from "./dom";
import { clock } from "./units";

/** Darker means more attempts; a row is a quarter of a power of two in microseconds. */
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
  for (let at = 0; at < cells.length; at += 3) {
    // A logarithm, so that rare ones stay visible.
    ctx.fillStyle = `rgba(0, 114, 178, ${0.12 + 0.88 * (Math.log1p(cells[at + 2]) / Math.log1p(most))})`;
    ctx.fillRect(cells[at], high - cells[at + 1], 1, 1);
  }
  const ticks = SHARES.map((share) => unit(2 ** ((high + 1 - share * rows) / 4)));
  return timed(title, canvas, columns, points * width_s, ticks);
}

const SHARES = [0, 0.25, 0.5, 0.75, 1];

/** A canvas with a pixel for each column of so many seconds. It has the time below it, and follows the zoom. */
export function timed(title: string, canvas: HTMLCanvasElement, columns: number, column_s: number, ticks: string[]): HTMLElement {
  const times = SHARES.map(() => element("span"));
  const figure = element(
    "figure",
    { "data-anew": "" },
    element("figcaption", {}, title),
    element(
      "div",
      { class: "heat" },
      element("div", { class: "rows" }, ...ticks.map((tick) => element("span", {}, tick))),
      element("div", { class: "cells" }, canvas),
      element("div", { class: "columns" }, ...times),
    ),
  );
  const show = (min: number, max: number) => {
    const shown = Math.max(max - min, column_s);
    canvas.style.width = `${(100 * columns * column_s) / shown}%`;
    canvas.style.left = `${(-100 * min) / shown}%`;
    times.forEach((time, at) => (time.textContent = clock(min + SHARES[at] * shown)));
  };
  show(0, columns * column_s);
  follows(figure, show);
  return figure;
}
