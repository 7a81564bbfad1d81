// The live page of a run: the figures so far, then each second. A viewer that reconnects gets what it
// missed. When the run is over, the page becomes its report.

import type { Data, Status, Told } from "./data";
import { element } from "./dom";
import { read, type Reading } from "./monitors";
import { append, connected, drawn, show, tables, type Figures, type Second } from "./report";
import { saves } from "./saved";
import { learn, say } from "./words";

const token = new URLSearchParams(location.search).get("token") ?? "";
let data: Data | null = null;
/** Whether something is still to be drawn when the page is visible again. */
let isBehind = false;

/** Draws in the next frame, once for everything that has arrived, and not while the page is hidden. */
function soon(draw: () => void): void {
  if (document.hidden) {
    isBehind = true;
    return;
  }
  requestAnimationFrame(draw);
}

export function watch(): void {
  const page = document.getElementById("page")!;
  const waits = (text: string) => page.replaceChildren(element("h1", {}, "throng"), element("p", { role: "status" }, say(text)));
  waits("The run has not started yet.");
  const source = new EventSource(`events?token=${encodeURIComponent(token)}`);
  const hear = <It>(name: string, take: (told: It) => void) =>
    source.addEventListener(name, (event) => {
      connected(true);
      take(JSON.parse((event as MessageEvent<string>).data) as It);
    });
  // What happens before the load starts.
  hear<{ setup: boolean }>("waiting", ({ setup }) => waits(setup ? "The setup is running. The load starts when it is complete." : "The run has not started yet."));
  hear<Data>("all", (told) => {
    const first = data === null;
    data = told;
    show(told, first ? controls : undefined);
    steered?.show(told.status ?? []);
  });
  hear<Second>("second", (told) => {
    if (data === null) return;
    append(told);
    soon(drawn);
  });
  hear<Reading[]>("readings", (told) => data && read(data, told));
  hear<Status[]>("status", (told) => {
    if (data === null) return;
    data.status = told;
    steered?.show(told);
  });
  hear<Figures>("figures", (told) => {
    if (data === null) return;
    tables(told);
  });
  hear<Told & { renderings: Record<string, string> }>("event", ({ renderings, ...told }) => {
    learn(renderings);
    data?.events.push(told);
  });
  hear<Data>("end", (told) => {
    source.close();
    data = told;
    show(told);
  });
  source.addEventListener("error", () => {
    if (data === null && source.readyState === EventSource.CLOSED) {
      page.replaceChildren(element("p", { role: "alert" }, say("The run has ended, or the link is not valid.")));
    }
    connected(false);
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isBehind) {
      isBehind = false;
      drawn();
    }
  });
}

/** Sends a command to the run, and shows its answer; false if it is refused. `load` is empty if the run has only one. */
type Ask = (command: unknown, load?: string) => Promise<boolean>;

/** The controls of each load that is running; null without controls. */
let steered: { show: (all: Status[]) => void } | null = null;

/** What controls the run, like `throng control`. */
function controls(): HTMLElement {
  const answer = element("span", { role: "status", id: "answer" });
  const ask: Ask = async (command, load = "") => {
    const body = JSON.stringify({ version: 1, command, load: load || null });
    try {
      const reply = await fetch("control", { method: "POST", headers: { "X-Throng-Token": token }, body });
      const told = reply.ok ? await reply.json() : { refused: `${reply.status} ${await reply.text()}` };
      answer.textContent = told.done ?? [told.refused, told.help].filter(Boolean).join(": ");
      return told.done !== undefined;
    } catch {
      answer.textContent = say("The run does not respond.");
      return false;
    }
  };
  const holder = element("div", { id: "loads" });
  const rows = new Map<string, Row>();
  steered = {
    show(all) {
      for (const [name, row] of rows) {
        if (all.some((it) => it.load === name)) continue;
        row.element.remove();
        rows.delete(name);
      }
      for (const status of all) {
        const row = rows.get(status.load) ?? new Row(status.load, ask);
        if (!rows.has(status.load)) holder.append(row.element);
        rows.set(status.load, row);
        row.show(status);
      }
    },
  };
  steered.show(data?.status ?? []);
  const name = element("input", { "aria-label": say("Name of the mark"), placeholder: say("Name of the mark"), maxlength: "80", size: "14", id: "mark-name" });
  return element(
    "section",
    { id: "controls", "aria-label": say("Controls") },
    holder,
    element(
      "div",
      { class: "bar" },
      button("pause", say("Pause"), () => void ask("pause")),
      button("go-on", say("Resume"), () => void ask("go-on")),
      name,
      button("mark", say("Mark"), () => void ask({ mark: name.value.trim() })),
      stop(ask),
      saves(token, data?.recorded ? ["csv", "json", "html"] : ["json", "html"]),
    ),
    answer,
  );
}

function button(name: string, text: string, act: () => void): HTMLElement {
  const made = element("button", { type: "button", class: name }, text);
  made.addEventListener("click", act);
  return made;
}

/** The controls of one load. */
class Row {
  readonly element: HTMLElement;
  private readonly about = element("span");
  private readonly users: Level;
  private readonly rate: Level;

  constructor(load: string, ask: Ask) {
    const label = (text: string) => (load === "" ? text : `${load}: ${text}`);
    this.users = new Level(label(say("users")), say("users"), "1", (users) => ask({ change: { users } }, load));
    this.rate = new Level(label(say("starts per second")), say("per second"), "any", (rate) => ask({ change: { rate } }, load));
    const parts = [
      this.about,
      this.users.element,
      this.rate.element,
      button("less", `− ${say("Less")}`, () => void ask({ change: { times: 1 / 1.1 } }, load)),
      button("more", `+ ${say("More")}`, () => void ask({ change: { times: 1.1 } }, load)),
      button("end-phase", say("End phase"), () => void ask({ change: "end-phase" }, load)),
    ];
    this.element = element("div", { class: "bar", role: "group", "aria-label": load || say("Load"), "data-load": load }, ...parts);
  }

  show(status: Status): void {
    this.about.textContent = [status.load, status.phase, status.paused && say("paused")].filter(Boolean).join(" · ");
    this.users.show(status.users);
    this.rate.show(status.per_second);
  }
}

/** A number of users or a rate: shows what the run wants now, and sets what is typed. */
class Level {
  readonly element: HTMLFormElement;
  private readonly input: HTMLInputElement;
  /** What the run wants, and whether the field shows something else that is being typed. */
  private wanted: number | null = null;
  private isTyped = false;

  constructor(name: string, unit: string, step: string, set: (value: number) => Promise<boolean>) {
    this.input = element("input", { type: "number", min: "0", max: "1000000000", step, required: "", "aria-label": name });
    this.element = element("form", { class: "level" }, this.input, element("span", {}, unit), element("button", { type: "submit", "aria-label": `${say("Set")}: ${name}` }, say("Set")));
    this.input.addEventListener("input", () => (this.isTyped = true));
    this.input.addEventListener("keydown", (event) => event.key === "Escape" && this.drop());
    this.element.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (await set(this.input.valueAsNumber)) this.isTyped = false;
      else this.drop();
    });
  }

  /** Null if the load has no such level now. What is being typed stays. */
  show(wanted: number | null): void {
    this.wanted = wanted;
    this.element.hidden = wanted === null;
    if (wanted !== null && !this.isTyped) this.input.value = String(Number(wanted.toFixed(3)));
  }

  private drop(): void {
    this.isTyped = false;
    this.show(this.wanted);
  }
}

/** Asks for a second click: a stopped run cannot be resumed. */
function stop(ask: Ask): HTMLElement {
  const made = element("button", { type: "button", class: "stop" }, say("Stop"));
  let sure = false;
  made.addEventListener("click", () => {
    if (sure) void ask("stop");
    sure = !sure;
    made.textContent = say(sure ? "Click again to stop" : "Stop");
    if (sure) {
      setTimeout(() => {
        sure = false;
        made.textContent = say("Stop");
      }, 4000);
    }
  });
  return made;
}

