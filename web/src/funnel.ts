// The connection funnel: how many connections passed each stage.

import { element } from "./dom";
import { count, share } from "./units";
import { say, tell } from "./words";

interface Stage {
  stage: string;
  began: number;
  ok: number;
  failed: number;
  cut_off: number | null;
}

/** Each bar is as wide as its share of all connections; the table below has the times. */
export function funnel(stages: Stage[]): HTMLElement | null {
  const shown = stages.filter((row) => row.ok + row.failed > 0 && row.stage !== "end" && row.stage !== "resolve");
  if (shown.length < 2) return null;
  const most = Math.max(...shown.map((row) => row.began));
  const part = (of: number, name: string) => {
    const made = element("span", { class: name });
    made.style.width = `${(100 * of) / most}%`;
    return made;
  };
  const rows = shown.map((row) => {
    const lost = row.failed > 0 ? ` · ${count(row.failed)} ${say("failures")} (${share(row.failed / row.began)})` : "";
    return element(
      "li",
      {},
      element("span", { class: "stage" }, tell(row.stage)),
      element("span", { class: "bar-of" }, part(row.ok, "ok"), part(row.failed, "failed"), part(row.cut_off ?? 0, "cut")),
      element("span", { class: "told" }, `${count(row.ok)} / ${count(row.began)}${lost}`),
    );
  });
  return element("figure", {}, element("figcaption", {}, say("Connection funnel")), element("ul", { class: "funnel" }, ...rows));
}
