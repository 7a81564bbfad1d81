// Links that save a run as a file. The server makes the files from the run directory.

import { element } from "./dom";
import { say } from "./words";

const FORMS = [
  ["csv", "CSV", "One row per second and step"],
  ["json", "JSON", "The summary, as `throng report --json` prints it"],
  ["html", "HTML", "The report as one file"],
];

/** `forms` are the endings of the files; `query` names the run, if the server has several. */
export function saves(token: string, forms: string[], query = ""): HTMLElement {
  const link = ([form, name, title]: string[]) =>
    element("a", { href: `save?form=${form}&token=${encodeURIComponent(token)}${query}`, download: "", title: say(title) }, name);
  const shown = FORMS.filter(([form]) => forms.includes(form)).map(link);
  return element("span", { class: "saves" }, `${say("Download")}: `, ...shown);
}
