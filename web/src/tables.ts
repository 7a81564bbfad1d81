// Tables as throng makes them: their columns are those of its tables in the terminal.

import type { Cell, Table } from "./data";
import { table, type Column } from "./dom";
import { bytes, count, duration, share } from "./units";
import { either, say } from "./words";

/** A figure with its unit. */
export function figureOf(figure: number | null, unit: string): string {
  if (figure === null) return "–";
  if (unit === "ns" || unit === "time") return duration(figure);
  if (unit === "share") return share(figure);
  if (unit === "bytes_per_s") return `${bytes(figure)}/s`;
  if (unit === "per_s" || unit === "rate") return `${count(figure)}/s`;
  return unit === "bytes" ? bytes(figure) : count(figure);
}

/** Null if there is no such table. The head of a rate has its unit. */
export function told(made: Table | undefined, title: string): HTMLElement | null {
  if (!made) return null;
  const columns = made.columns.map((it, at): Column<Cell[]> => {
    const value = ({ [at]: cell }: Cell[]) => (cell === null || typeof cell === "number" ? cell : either(cell));
    const text = (cell: number | string | null) => (typeof cell === "string" ? cell : it.unit === "per_s" ? count(cell) : figureOf(cell, it.unit ?? "number"));
    return { title: either(it.head), value, text: (row) => text(value(row)), left: it.words };
  });
  return table<Cell[]>(title, columns, made.rows, say("Filter"));
}
