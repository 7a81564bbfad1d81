// Findings that need minutes, on real servers: how often each is found.
//
//   node benches/stagings.js target/release/throng [--runs 10] [--at-once 30] [--out DIR] [NAME…]
//
// `--out` keeps the records, for `throng why`.
// What needs seconds is in `cargo xtask test why_staged`.
"use strict";

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const http = require("node:http");
const os = require("node:os");
const path = require("node:path");

const OF_MINUTE_MS = 60_000;

// A service of the test: `delay` gives the milliseconds of a response.
function service(delay) {
  return new Promise((done) => {
    const server = http.createServer((_, response) => {
      setTimeout(() => response.end("x"), delay());
    });
    server.listen(0, "127.0.0.1", () => done(server));
  });
}

const scenario = (port, load, think) =>
  `target: http://127.0.0.1:${port}\nload: [${load}]\n` +
  `sessions: {s: {steps: [http: GET /, {think: ${think}}]}}\n`;

// A staging starts its server and gives the scenario and what ends the server.
const STAGINGS = {
  // What is kept makes each response slower, by 2 % a minute.
  drift: async () => {
    const [begun, kept] = [Date.now(), []];
    const server = await service(() => {
      kept.push("x".repeat(100));
      return 100 * (1 + (0.02 * (Date.now() - begun)) / OF_MINUTE_MS);
    });
    const text = scenario(server.address().port, "{users: 5, for: 350s}", "150ms..250ms");
    return { text, ends: () => server.close() };
  },
  // Half as fast in the first quarter of a minute.
  "warm-up": async (binary) => {
    const words = ["http", "--servers", "4", "--service", "20ms", "--warm-up", "15s:50%"];
    const target = await throngTarget(binary, words);
    const text = scenario(target.port, "{users: 2, for: 75s}", "50ms..150ms");
    return { text, ends: () => target.child.kill() };
  },
};

// `throng target`, once it listens.
function throngTarget(binary, words) {
  const child = spawn(binary, ["target", ...words, "--listen", "127.0.0.1:0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return new Promise((done, fails) => {
    let said = "";
    child.on("exit", (code) => fails(new Error(`throng target ended with ${code}`)));
    child.stdout.on("data", (data) => {
      said += data;
      const port = /listening on [^ ]+:(\d+)/.exec(said);
      if (port) done({ child, port: port[1] });
    });
  });
}

// The JSON of a run.
function run(binary, text, record) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "staging-"));
  fs.writeFileSync(path.join(folder, "s.yaml"), text);
  const kept = record ? ["--out", record] : ["--no-record"];
  const child = spawn(binary, ["run", "s.yaml", "--json", ...kept], {
    cwd: folder,
    stdio: ["ignore", "pipe", "ignore"],
  });
  return new Promise((done, fails) => {
    let out = "";
    child.stdout.on("data", (data) => (out += data));
    child.on("close", (code) => {
      fs.rmSync(folder, { recursive: true });
      try {
        done(JSON.parse(out));
      } catch {
        fails(new Error(`throng run ended with ${code} and no JSON`));
      }
    });
  });
}

// Whether the finding is there, and what else is.
async function stage(binary, name, record) {
  const { text, ends } = await STAGINGS[name](binary);
  try {
    const { findings } = await run(binary, text, record);
    const sure = findings.filter((it) => it.level !== "hint");
    const found = sure.some((it) => it.code === name);
    return { found, others: sure.filter((it) => it.code !== name).map((it) => it.code) };
  } finally {
    ends();
  }
}

async function main() {
  const [binary, ...words] = process.argv.slice(2);
  const options = { "--runs": 10, "--at-once": 30, "--out": "" };
  const names = [];
  while (words.length > 0) {
    const word = words.shift();
    if (word in options) options[word] = words.shift();
    else if (word in STAGINGS) names.push(word);
    else throw new Error(`${word}: expected one of ${Object.keys(STAGINGS).join(", ")}`);
  }
  const [runs, atOnce] = [Number(options["--runs"]), Number(options["--at-once"])];
  if (!binary || !(runs > 0 && atOnce > 0)) {
    throw new Error("usage: stagings.js THRONG [--runs N] [--at-once N] [--out DIR] [NAME…]");
  }
  const record = (name, at) =>
    options["--out"] && path.resolve(options["--out"], `${name}-${at + 1}`);
  const all = names.length > 0 ? names : Object.keys(STAGINGS);
  const jobs = all.flatMap((name) => Array.from({ length: runs }, (_, at) => [name, at]));
  const results = [];
  const worker = async () => {
    for (let job; (job = jobs.shift()); ) {
      const [name, at] = job;
      results.push({ name, ...(await stage(path.resolve(binary), name, record(name, at))) });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  for (const name of all) {
    const own = results.filter((it) => it.name === name);
    const others = own.flatMap((it) => it.others);
    const beside = others.length > 0 ? `; also ${others.join(", ")}` : "";
    const found = own.filter((it) => it.found).length;
    console.log(`${name}: found in ${found} of ${own.length}${beside}`);
  }
  if (!results.every((it) => it.found)) process.exitCode = 1;
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 2;
});
