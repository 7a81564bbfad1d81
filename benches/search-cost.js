// What a search costs: CPU of the generator per request in `throng capacity` beside that of a plain
// run at the same rate, in pairs that take turns.
//
//   node benches/search-cost.js target/release/throng [--pairs 10] [--rate 5000] [--confirm 10]
//
// With `--from` = `--max`, the whole search is at one rate.
"use strict";

const { spawn, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

// `throng target http`, once it listens.
function target(binary) {
  const words = ["target", "http", "--listen", "127.0.0.1:0"];
  const child = spawn(binary, words, { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((done) => {
    child.stdout.on("data", (data) => {
      const port = /listening on [^ ]+:(\d+)/.exec(data);
      if (port) done({ child, port: port[1] });
    });
  });
}

// Microseconds of CPU per request, and the seconds under load.
function measure(binary, words) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "search-cost-"));
  const out = path.join(folder, "run");
  const all = [...words, "--json", "--quiet", "--out", out];
  const ran = spawnSync(binary, all, { encoding: "utf8", maxBuffer: 1 << 26 });
  fs.rmSync(folder, { recursive: true });
  if (ran.status !== 0) throw new Error(`throng ${words[0]} ended with ${ran.status}\n${ran.stderr}`);
  const { generator, lasted_ns, total } = JSON.parse(ran.stdout);
  return { each_us: (generator.cores * lasted_ns) / 1e3 / total.count, lasted_s: lasted_ns / 1e9 };
}

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

async function main() {
  const [binary, ...words] = process.argv.slice(2);
  const options = { "--pairs": 10, "--rate": 5_000, "--confirm": 10 };
  while (words.length > 0) {
    const word = words.shift();
    if (!(word in options)) throw new Error(`${word}: expected ${Object.keys(options).join(", ")}`);
    options[word] = Number(words.shift());
  }
  if (!binary) throw new Error("usage: search-cost.js THRONG [--pairs N] [--rate N] [--confirm S]");
  const server = await target(binary);
  const scenario = path.join(os.tmpdir(), `search-cost-${process.pid}.yaml`);
  const rate = options["--rate"];
  fs.writeFileSync(
    scenario,
    `target: http://127.0.0.1:${server.port}\nload: [{iterations: ${rate}/s, users: 500, for: 20s}]\n` +
      `thresholds: ["http p99 < 2s"]\nsessions: {s: {steps: [http: GET /]}}\n`,
  );
  try {
    const search = ["capacity", scenario, "--from", `${rate}/s`, "--max", `${rate}/s`];
    search.push("--confirm", `${options["--confirm"]}s`, "--no-overload");
    let lasted = Math.round(measure(binary, search).lasted_s);
    const ratios = [];
    for (let pair = 0; pair < options["--pairs"]; pair += 1) {
      const plain = () => measure(binary, ["run", scenario, "--for", `${lasted}s`]).each_us;
      const searched = () => measure(binary, search).each_us;
      // Who is first changes, as the host does.
      const one = pair % 2 === 0 ? plain() : searched();
      const other = pair % 2 === 0 ? searched() : plain();
      const [of_plain, of_search] = pair % 2 === 0 ? [one, other] : [other, one];
      ratios.push(of_search / of_plain);
      const text = [of_plain, of_search].map((it) => it.toFixed(1)).join(" and ");
      console.log(`pair ${pair + 1}: ${text} µs per request, ${ratios.at(-1).toFixed(3)}`);
    }
    const [low, middle, high] = [0.25, 0.5, 0.75].map((it) => quantile(ratios, it).toFixed(3));
    console.log(`search / plain run: ${middle} (quartiles ${low} and ${high})`);
  } finally {
    fs.rmSync(scenario);
    server.child.kill();
  }
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 2;
});
