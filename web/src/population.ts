// The states of the population, as colors: each cell has the same users all along.

import type { Picture } from "./data";
import { element, section, table } from "./dom";
import { timed } from "./heat";
import { clock, count } from "./units";
import { say } from "./words";

/** In the order of the picture's numbers: the letter, the color, and the text of a state. */
const STATES: [string, string, () => string][] = [
  ["o", "--green", () => say("online")],
  ["d", "--grey", () => say("disconnected")],
  ["c", "--sky", () => say("connecting")],
  ["l", "--blue", () => say("logging in")],
  ["a", "--red", () => say("away (connection lost)")],
  ["f", "--pink", () => say("connecting or logging in failed")],
];
/** Of the table: more times than this are joined. */
const TIMES_MAX = 24;

/** Draws cells that are written as letters, each after the number of its repetitions: `12O3a`. */
function paint(ctx: CanvasRenderingContext2D, letters: string, draw: (at: number, length: number) => void): void {
  let at = 0;
  const style = getComputedStyle(document.documentElement);
  for (const [, times, letter] of letters.matchAll(/(\d+)(\D)/g)) {
    const state = STATES.find(([it]) => it === letter.toLowerCase());
    if (state) {
      ctx.globalAlpha = letter === state[0] ? 0.4 : 1;
      ctx.fillStyle = style.getPropertyValue(state[1]).trim();
      draw(at, Number(times));
    }
    at += Number(times);
  }
}

function canvas(width: number, height: number, title: string): [HTMLCanvasElement, CanvasRenderingContext2D] {
  const made = element("canvas", { role: "img", "aria-label": title });
  [made.width, made.height] = [width, height];
  return [made, made.getContext("2d")!];
}

function legend(most: number[]): HTMLElement {
  const shown = STATES.filter((_, state) => most[state] > 0).map(([, colour, text]) => {
    const sample = element("i");
    sample.style.background = `var(${colour})`;
    return element("span", {}, sample, text());
  });
  return element("div", { class: "key" }, ...shown, element("span", {}, say("Full color: at least half of the users; pale: at least 5 %.")));
}

/** The cells as they are now, and how many users are in each state. */
function now(picture: Picture): HTMLElement {
  const columns = Math.max(20, Math.ceil(Math.sqrt(picture.cells * 4)));
  const title = say("Now: {} users per cell", count(picture.users_per_cell));
  const [drawn, ctx] = canvas(columns, Math.ceil(picture.cells / columns), title);
  paint(ctx, picture.now, (at, length) => {
    for (let cell = at; cell < at + length; cell += 1) ctx.fillRect(cell % columns, Math.floor(cell / columns), 1, 1);
  });
  const told = STATES.flatMap(([, , text], state) => (picture.users[state] > 0 ? [`${count(picture.users[state])} ${text()}`] : []));
  return element("figure", { "data-anew": "", class: "cells-now" }, element("figcaption", {}, title), drawn, element("p", {}, told.join(" · ")));
}

/** What the picture shows, as numbers. */
function numbers(picture: Picture, most: number[]): HTMLElement {
  const each = Math.ceil(picture.most.length / TIMES_MAX);
  const rows = Array.from({ length: Math.ceil(picture.most.length / each) }, (_, row) => {
    const part = picture.most.slice(row * each, (row + 1) * each);
    return { at_s: row * each * picture.width_s, users: STATES.map((_, state) => Math.max(...part.map((it) => it[state]))) };
  });
  const states = STATES.flatMap(([, , text], state) => (most[state] > 0 ? [{ title: text(), value: (row: (typeof rows)[number]) => row.users[state], text: (row: (typeof rows)[number]) => count(row.users[state]) }] : []));
  const title = say("Maximum number of users in each state over time");
  const time = { title: say("time"), value: (row: (typeof rows)[number]) => row.at_s, text: (row: (typeof rows)[number]) => clock(row.at_s), left: true };
  return element("details", { "data-key": "population-numbers" }, element("summary", {}, title), table(title, [time, ...states], rows, say("Filter")));
}

/** Cells from top to bottom, time from left to right. Null without users that stay connected. */
export function population(picture: Picture | null | undefined, live: boolean): HTMLElement | null {
  if (!picture || picture.columns.length === 0) return null;
  const rows = Math.ceil(picture.cells / picture.cells_per_row);
  const users = picture.users_per_cell * picture.cells_per_row;
  const most = STATES.map((_, state) => Math.max(...picture.most.map((it) => it[state])));
  const title = say("States of users over time: {} users per row", count(users));
  const [drawn, ctx] = canvas(picture.columns.length, rows, title);
  picture.columns.forEach((letters, column) => paint(ctx, letters, (at, length) => ctx.fillRect(column, at, 1, length)));
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => count(Math.max(1, Math.round(share * picture.cells * picture.users_per_cell))));
  return section("population", say("Population"), legend(most), live && now(picture), timed(title, drawn, picture.columns.length, picture.width_s, ticks), numbers(picture, most));
}
