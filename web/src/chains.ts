// Where the time of a slow attempt went: one bar, and its stages in words.

import { element } from "./dom";
import { duration } from "./units";
import { say } from "./words";

/** In their order: the field of the data, and the name. */
const STAGES: [string, string][] = [
  ["waiting_ns", "waiting"],
  ["resolve_ns", "resolve"],
  ["connect_ns", "connect"],
  ["proxy_ns", "proxy"],
  ["tls_ns", "tls"],
  ["upgrade_ns", "upgrade"],
  ["send_ns", "send"],
  ["first_byte_ns", "first byte"],
  ["last_byte_ns", "last byte"],
  ["read_ns", "read"],
];

/** The stages of an attempt that took time: name, and nanoseconds. */
function stages(chain: Record<string, unknown>): [string, number][] {
  const timed = STAGES.map(([key, name]): [string, number] => [name, Number(chain[key] ?? 0)]);
  return timed.filter(([, time]) => time > 0);
}

export function chainText(row: any): string {
  if (!row.chain) return say("stages: not recorded");
  const told = stages(row.chain).map(([name, time]) => `${say(name)} ${duration(time)}`);
  const tls = row.chain.tls_resumed === null ? [] : [say(row.chain.tls_resumed ? "TLS session resumed" : "full TLS handshake")];
  const again = row.chain.retransmits ? [say("retransmitted segments on this connection so far: {}", String(row.chain.retransmits))] : [];
  return [...told, ...tls, ...again].join(" · ");
}

/** One bar of all stages, each as wide as its share of the time; the text tells them. */
export function chainBar(row: any): HTMLElement | string {
  if (!row.chain) return chainText(row);
  const parts = stages(row.chain);
  const whole = parts.reduce((sum, [, time]) => sum + time, 0) || 1;
  const bar = parts.map(([name, time], at) => {
    const style = `width:${((time / whole) * 100).toFixed(2)}%`;
    return element("span", { class: `part s${at % 4}`, style, title: `${say(name)} ${duration(time)}` });
  });
  return element("div", { class: "chain" }, element("div", { class: "chain-bar" }, ...bar), chainText(row));
}
