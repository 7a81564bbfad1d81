// The live page of a run: the figures so far, then each second. A viewer that reconnects gets what it
// missed. When the run is over, the page becomes its report.

import type { Data, Told } from "./data";
import { element } from "./dom";
import { read, type Reading } from "./monitors";
import { append, connected, drawn, show, tables, type Figures, type Second } from "./report";
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
  });
  hear<Second>("second", (told) => {
    if (data === null) return;
    append(told);
    soon(drawn);
  });
  hear<Reading[]>("readings", (told) => data && read(data, told));
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

/** Buttons that control the run, like `throng control`. */
function controls(): HTMLElement {
  const status = element("span", { role: "status", id: "answer" });
  const loads: string[] = data?.loads ?? [];
  const load = element("select", { "aria-label": say("Load") });
  for (const name of loads) load.append(element("option", { value: name }, name));
  const ask = async (command: unknown) => {
    const body = JSON.stringify({ version: 1, command, load: loads.length > 0 ? load.value : null });
    try {
      const answer = await fetch("control", { method: "POST", headers: { "X-Throng-Token": token }, body });
      const told = answer.ok ? await answer.json() : { refused: `${answer.status} ${await answer.text()}` };
      status.textContent = told.done ?? [told.refused, told.help].filter(Boolean).join(": ");
    } catch {
      status.textContent = say("The run does not respond.");
    }
  };
  const button = (id: string, text: string, command: () => unknown) => {
    const made = element("button", { type: "button", id }, text);
    made.addEventListener("click", () => void ask(command()));
    return made;
  };
  const name = element("input", { "aria-label": say("Name of the mark"), placeholder: say("Name of the mark"), maxlength: "80", size: "14" });
  return element(
    "section",
    { class: "bar", id: "controls", "aria-label": say("Controls") },
    loads.length > 0 && load,
    button("less", `− ${say("Less")}`, () => ({ change: { times: 1 / 1.1 } })),
    button("more", `+ ${say("More")}`, () => ({ change: { times: 1.1 } })),
    button("pause", say("Pause"), () => "pause"),
    button("go-on", say("Resume"), () => "go-on"),
    button("end-phase", say("End phase"), () => ({ change: "end-phase" })),
    name,
    button("mark", say("Mark"), () => ({ mark: name.value.trim() })),
    stop(ask),
    status,
  );
}

/** Asks for a second click: a stopped run cannot be resumed. */
function stop(ask: (command: unknown) => Promise<void>): HTMLElement {
  const made = element("button", { type: "button", id: "stop" }, say("Stop"));
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

