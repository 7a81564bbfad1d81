// Audits: what the target said of its users and its books, against what was counted.

import type { Data } from "./data";
import { element, section, table } from "./dom";
import { count, duration } from "./units";
import { say, tell } from "./words";

const FIGURES: [string, string][] = [
  ["compared", "compared"],
  ["agree", "agree"],
  ["false online", "false_online"],
  ["false offline", "false_offline"],
  ["wrong node", "wrong_node"],
  ["undecided", "undecided"],
  ["twice", "twice"],
  ["strangers", "strangers"],
];

/** The views of an audit of presence: figures of the round with the most wrong users. */
function presence(audit: any): HTMLElement {
  const figures = FIGURES.map(([title, of]) => ({
    title: say(title),
    value: (row: any) => (row.worst ? (row.worst[of] as number) : null),
    text: count,
  }));
  const agreed = { title: say("time to agree (p99)"), value: (row: any) => (row.time_to_agree.count > 0 ? row.time_to_agree.p99_ns : null), text: duration };
  const name = { title: say("view"), value: (row: any) => row.name, left: true };
  const rows = table<any>(`${say("audit")} ${audit.name}`, [name, { title: say("rounds"), value: (row: any) => row.read, text: count }, ...figures, agreed], audit.views, say("Filter"));
  const wrong = audit.views.flatMap((view: any) => (view.worst?.wrong ?? []).map((it: any) => ({ view: view.name, ...it })));
  const users = wrong.length > 0 && table<any>(
    say("wrong users"),
    [
      { title: say("view"), value: (row) => row.view, left: true },
      { title: say("user"), value: (row) => row.user },
      { title: say("error"), value: (row) => row.what, left: true },
      { title: say("last event"), value: (row) => row.last, left: true },
      { title: say("at"), value: (row) => row.at_ns, text: duration },
    ],
    wrong,
    say("Filter"),
  );
  const failed = audit.views.filter((view: any) => view.failed > 0).map((view: any) =>
    element("p", {}, `${view.name}: ${say("failed readings")}: ${count(view.failed)} / ${count(view.read + view.failed)}. ${tell(view.trouble ?? "")}`));
  return element("div", {}, rows, users, ...failed);
}

function books(audit: any): HTMLElement | null {
  return table<any>(
    `${say("audit")} ${audit.name} · ${audit.step}`,
    [
      { title: say("at"), value: (row) => row.at_ns, text: duration },
      { title: say("counted by the service"), value: (row) => row.said, text: count },
      { title: say("at least"), value: (row) => row.least, text: count },
      { title: say("at most"), value: (row) => row.most, text: count },
      { title: say("off"), value: (row) => row.off, text: (off) => String(off) },
    ],
    audit.entries,
    say("Filter"),
  );
}

/** What audits found. */
export function audits(data: Data): HTMLElement | null {
  const all = (data.summary.audits ?? []).map((audit: any) => (audit.step ? books(audit) : presence(audit)));
  return section("audits", say("Audits"), all.length > 0 && element("div", {}, ...all));
}
