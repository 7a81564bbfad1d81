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

/** How a table is sorted (by the title of a column) and filtered, and what makes its rows. */
interface State {
  by: string | null;
  falls: boolean;
  wanted: string;
  rows: () => HTMLElement[];
}

/** By the captions of tables: one that is drawn again stays as it was left. */
const states = new Map<string, State>();

/** A table that sorts by a click on a column; one with many rows can be filtered. Its handlers look up
 * the live table and the newest rows: they stay on elements that `patch` keeps. */
export function table<Row>(caption: string, columns: Column<Row>[], rows: Row[], filter: string): HTMLElement | null {
  if (rows.length === 0) return null;
  const text = (column: Column<Row>, row: Row) => column.text?.(row) ?? String(column.value(row) ?? "–");
  const state: State = states.get(caption) ?? { by: null, falls: true, wanted: "", rows: () => [] };
  states.set(caption, state);
  state.rows = () => {
    let shown = rows.filter((row) => columns.some((it) => it.left && text(it, row).toLowerCase().includes(state.wanted.toLowerCase())));
    const value = columns.find((it) => it.title === state.by)?.value;
    if (value) {
      shown = [...shown].sort((one, two) => {
        const [a, b] = [value(one) ?? -Infinity, value(two) ?? -Infinity];
        return (a < b ? -1 : a > b ? 1 : 0) * (state.falls ? -1 : 1);
      });
    }
    return shown.map((row) => {
      const cells = columns.map((it, at) =>
        element(at === 0 ? "th" : "td", at === 0 ? { scope: "row" } : it.left ? { class: "text" } : {}, it.cell?.(row) ?? text(it, row)),
      );
      return element("tr", { "data-key": text(columns[0], row) }, ...cells);
    });
  };
  const redraw = (inside: Element) => inside.querySelector("tbody")!.replaceChildren(...state.rows());
  const direction = () => (state.falls ? "descending" : "ascending");
  const heads = columns.map((column) => {
    const button = element("button", { type: "button" }, column.title);
    const sorted: Record<string, string> = state.by === column.title ? { "aria-sort": direction() } : {};
    const head = element("th", { scope: "col", class: column.left ? "text" : "", "data-key": column.title, ...sorted }, button);
    button.addEventListener("click", () => {
      state.falls = state.by === column.title ? !state.falls : !column.left;
      state.by = column.title;
      for (const other of head.parentElement!.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", direction());
      redraw(head.closest("table")!);
    });
    return head;
  });
  const body = element("tbody", {}, ...state.rows());
  const made = element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...heads)), body);
  const scrolls = element("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": caption, "data-key": caption }, made);
  if (rows.length <= 12) return scrolls;
  const input = element("input", { type: "search", placeholder: filter, "aria-label": `${filter}: ${caption}` });
  input.value = state.wanted;
  input.addEventListener("input", () => {
    state.wanted = input.value;
    redraw(input.parentElement!);
  });
  return element("div", { "data-key": `${filter}: ${caption}` }, input, scrolls);
}

/** What identifies a node among its siblings, wherever it stands. */
const keyOf = (node: Node): string | null => (node instanceof HTMLElement && (node.dataset.key ?? node.id)) || null;

/** Whether one can become the other. `data-anew` marks what cannot, such as a chart. */
const alike = (one: Node, other: Node): boolean =>
  one.nodeName === other.nodeName && !(other instanceof HTMLElement && other.dataset.anew !== undefined);

/**
 * Makes an element show what `made` shows, which is used up. An element stays the same one as long as
 * its key, or else its place and kind, stays: focus, scroll positions, what was opened, and a click
 * in progress survive. `dropped` is told which elements leave the page.
 */
export function patch(holder: Element, made: Element, dropped: (it: Element) => void): void {
  // The user opens and closes details.
  const isOwn = (name: string) => name === "open" && holder.nodeName === "DETAILS";
  for (const { name } of [...holder.attributes]) if (!made.hasAttribute(name) && !isOwn(name)) holder.removeAttribute(name);
  for (const { name, value } of made.attributes) if (holder.getAttribute(name) !== value) holder.setAttribute(name, value);
  const keyed = new Map([...holder.childNodes].flatMap((it): [string, ChildNode][] => ((key) => (key ? [[key, it]] : []))(keyOf(it))));
  const stays = new Set<ChildNode>();
  let next = holder.firstChild;
  for (const wanted of [...made.childNodes]) {
    const key = keyOf(wanted);
    while (next && stays.has(next)) next = next.nextSibling;
    const found = key ? keyed.get(key) : next && !keyOf(next) ? next : undefined;
    if (!found || stays.has(found) || !alike(found, wanted)) {
      stays.add(wanted);
      holder.insertBefore(wanted, next);
      continue;
    }
    stays.add(found);
    if (found !== next) holder.insertBefore(found, next);
    if (found instanceof Element) patch(found, wanted as Element, dropped);
    else if (found.nodeValue !== wanted.nodeValue) found.nodeValue = wanted.nodeValue;
  }
  for (const it of [...holder.childNodes]) {
    if (stays.has(it)) continue;
    if (it instanceof Element) dropped(it);
    it.remove();
  }
}
