// Elements. Text only ever becomes text: nothing that a target said is read as HTML.

type Child = Node | string | null | undefined | false;

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  for (const child of children) if (child) made.append(child);
  return made;
}

/** A part of the page with a heading; null where it has nothing to show. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement | null {
  const shown = children.filter(Boolean);
  if (shown.length === 0) return null;
  const heading = element("h2", { id: `${id}-title` }, title);
  return element("section", { id, "aria-labelledby": `${id}-title` }, heading, ...shown);
}

export interface Column<Row> {
  title: string;
  /** What is sorted by; a text is sorted as one. */
  value: (row: Row) => number | string | null | undefined;
  /** What is shown; the value where there is none. */
  text?: (row: Row) => string;
  /** What stands in the cell, where that is more than text. */
  cell?: (row: Row) => Child;
  /** Texts are on the left. */
  left?: boolean;
}

/** How a table was left, by its caption: one that is made anew goes on like that. */
const states = new Map<string, { by: number; falls: boolean; wanted: string }>();

/** A table that sorts by a click on a column; one with many rows can be filtered. */
export function table<Row>(caption: string, columns: Column<Row>[], rows: Row[], filter: string): HTMLElement | null {
  if (rows.length === 0) return null;
  const state = states.get(caption) ?? { by: -1, falls: true, wanted: "" };
  states.set(caption, state);
  const body = element("tbody");
  const text = (column: Column<Row>, row: Row) => column.text?.(row) ?? String(column.value(row) ?? "–");
  const draw = () => {
    let shown = rows.filter((row) => columns.some((it) => it.left && text(it, row).toLowerCase().includes(state.wanted.toLowerCase())));
    if (state.by >= 0) {
      const value = columns[state.by].value;
      shown = [...shown].sort((one, two) => {
        const [a, b] = [value(one) ?? -Infinity, value(two) ?? -Infinity];
        return (a < b ? -1 : a > b ? 1 : 0) * (state.falls ? -1 : 1);
      });
    }
    body.replaceChildren(
      ...shown.map((row) => {
        const cells = columns.map((it, at) =>
          element(at === 0 ? "th" : "td", at === 0 ? { scope: "row" } : it.left ? { class: "text" } : {}, it.cell?.(row) ?? text(it, row)),
        );
        return element("tr", {}, ...cells);
      }),
    );
  };
  const heads = columns.map((column, at) => {
    const button = element("button", { type: "button" }, column.title);
    const head = element("th", { scope: "col", class: column.left ? "text" : "" }, button);
    const sorted = () => head.setAttribute("aria-sort", state.falls ? "descending" : "ascending");
    if (state.by === at) sorted();
    button.addEventListener("click", () => {
      state.falls = state.by === at ? !state.falls : !column.left;
      state.by = at;
      for (const other of heads) other.removeAttribute("aria-sort");
      sorted();
      draw();
    });
    return head;
  });
  draw();
  const made = element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...heads)), body);
  const scrolls = element("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": caption }, made);
  if (rows.length <= 12) return scrolls;
  const input = element("input", { type: "search", placeholder: filter, "aria-label": `${filter}: ${caption}` });
  input.value = state.wanted;
  input.addEventListener("input", () => {
    state.wanted = input.value;
    draw();
  });
  return element("div", {}, input, scrolls);
}

/** Changes what is in an element; focus, places and what was opened stay as they were. */
export function keep(holder: HTMLElement, change: () => void): void {
  const reached = () => [...holder.querySelectorAll<HTMLElement>("button, input, select, summary, [tabindex]")];
  const active = document.activeElement;
  const at = active instanceof HTMLElement ? reached().indexOf(active) : -1;
  const range = active instanceof HTMLInputElement ? [active.selectionStart, active.selectionEnd] : null;
  const name = (it: HTMLElement) => it.firstElementChild?.textContent;
  const open = new Set([...holder.querySelectorAll("details")].filter((it) => it.open).map(name));
  const places = [...holder.querySelectorAll(".scrolls")].map((it) => it.scrollLeft);
  change();
  holder.querySelectorAll("details").forEach((it) => (it.open = open.has(name(it))));
  holder.querySelectorAll(".scrolls").forEach((it, index) => (it.scrollLeft = places[index] ?? 0));
  if (at < 0) return;
  const next = reached()[at];
  next?.focus({ preventScroll: true });
  if (next instanceof HTMLInputElement && range && range[0] !== null) next.setSelectionRange(range[0], range[1]);
}
