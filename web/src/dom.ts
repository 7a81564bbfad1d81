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
  /** Texts are on the left. */
  left?: boolean;
}

/** A table that sorts by a click on a column; one with many rows can be filtered. */
export function table<Row>(caption: string, columns: Column<Row>[], rows: Row[], filter: string): HTMLElement | null {
  if (rows.length === 0) return null;
  let [by, falls] = [-1, true];
  let wanted = "";
  const body = element("tbody");
  const text = (column: Column<Row>, row: Row) => column.text?.(row) ?? String(column.value(row) ?? "–");
  const draw = () => {
    let shown = rows.filter((row) => columns.some((it) => it.left && text(it, row).toLowerCase().includes(wanted)));
    if (by >= 0) {
      const value = columns[by].value;
      shown = [...shown].sort((one, two) => {
        const [a, b] = [value(one) ?? -Infinity, value(two) ?? -Infinity];
        return (a < b ? -1 : a > b ? 1 : 0) * (falls ? -1 : 1);
      });
    }
    body.replaceChildren(
      ...shown.map((row) => {
        const cells = columns.map((it, at) =>
          element(at === 0 ? "th" : "td", at === 0 ? { scope: "row" } : it.left ? { class: "text" } : {}, text(it, row)),
        );
        return element("tr", {}, ...cells);
      }),
    );
  };
  const heads = columns.map((column, at) => {
    const button = element("button", { type: "button" }, column.title);
    const head = element("th", { scope: "col", class: column.left ? "text" : "" }, button);
    button.addEventListener("click", () => {
      falls = by === at ? !falls : !column.left;
      by = at;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falls ? "descending" : "ascending");
      draw();
    });
    return head;
  });
  draw();
  const made = element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...heads)), body);
  const scrolls = element("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": caption }, made);
  if (rows.length <= 12) return scrolls;
  const input = element("input", { type: "search", placeholder: filter, "aria-label": `${filter}: ${caption}` });
  input.addEventListener("input", () => {
    wanted = input.value.toLowerCase();
    draw();
  });
  return element("div", {}, input, scrolls);
}
