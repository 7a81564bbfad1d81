// Elements. Text stays text: nothing that a target sent is interpreted as HTML.

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

/** A part of the page with a heading; null if it has nothing to show. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement | null {
  const shown = children.filter(Boolean);
  if (shown.length === 0) return null;
  const heading = element("h2", { id: `${id}-title` }, title);
  return element("section", { id, "aria-labelledby": `${id}-title` }, heading, ...shown);
}

export interface Column<Row> {
  title: string;
  /** The value to sort by: as a number or as text. */
  value: (row: Row) => number | string | null | undefined;
  /** What is shown; the value by default. */
  text?: (row: Row) => string;
  /** The content of the cell, if that is more than text. */
  cell?: (row: Row) => Child;
  /** Text is aligned to the left. */
  left?: boolean;
}

/** How a table is sorted (by the title of a column) and filtered, and how its rows are made. */
interface State {
  by: string | null;
  falls: boolean;
  wanted: string;
  rows: () => HTMLElement[];
}

/** By the captions of tables: a table that is drawn again stays sorted and filtered. */
const states = new Map<string, State>();

/** A table that a click on a column sorts; one with many rows can be filtered. Its handlers look up the
 * current table and the newest rows, because `patch` keeps the elements that they are attached to. */
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

/** What identifies a node among its siblings, whatever its position. */
const keyOf = (node: Node): string | null => (node instanceof HTMLElement && (node.dataset.key ?? node.id)) || null;

/** Whether `patch` can turn one into the other. `data-anew` marks what it cannot, such as a chart. */
const alike = (one: Node, other: Node): boolean =>
  one.nodeName === other.nodeName && !(other instanceof HTMLElement && other.dataset.anew !== undefined);

/**
 * Makes an element show what `made` shows; `made` cannot be used afterwards. An element is kept as long
 * as its key, or else its position and kind, stays the same: focus, scroll positions, open details and
 * a click in progress survive. `dropped` is called with each element that leaves the page.
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
