// Whether live searches are right: `throng capacity` against servers with a known capacity.
//
//   node benches/search-laws.js target/release/throng [--runs 10] [--at-once 10] [--budget 1200]
//     [--seed 1] [--only 1server,8servers,usl,users,nginx,node]
//
// The law of a queue is what `/throng/law` of the target says; of users, `--connections-max`; of
// nginx, a simulation of its `limit_req` below; of Node.js, the rate that `wrk` reaches.
"use strict";

const { spawn, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const http = require("node:http");
const os = require("node:os");
const path = require("node:path");

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "search-laws-"));
const children = [];

function start(program, words) {
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return child;
}

// `throng target`, once it listens.
function target(binary, words) {
  const child = start(binary, ["target", ...words]);
  return new Promise((done) => {
    child.stdout.on("data", (data) => {
      const port = /listening on [^ ]+:(\d+)/.exec(data);
      if (port) done({ child, port: port[1] });
    });
  });
}

function get(url) {
  return new Promise((done, failed) => {
    http.get(url, (answer) => {
      let text = "";
      answer.on("data", (part) => (text += part)).on("end", () => done(text));
    }).on("error", failed);
  });
}

// Requests that come at random, so many a second, as nginx counts them: a bucket of 1,000 a second
// and 100 more, in milliseconds. The share that is refused.
function refused(rate) {
  let [time, last, excess, bad, all] = [0, 0, 0, 0, 0];
  let state = 1;
  // Mulberry32.
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 0.5) / 2 ** 32;
  };
  while (time < 1_000) {
    time -= Math.log(random()) / rate;
    const now = Math.floor(time * 1_000);
    const next = Math.max(excess - 1_000 * (now - last) + 1_000, 0);
    all += 1;
    if (next > 100_000) bad += 1;
    else [excess, last] = [next, now];
  }
  return bad / all;
}

function lawOfNginx() {
  let [low, high] = [900, 1_200];
  for (let step = 0; step < 12; step += 1) {
    const middle = (low + high) / 2;
    if (refused(middle) < 0.01) low = middle;
    else high = middle;
  }
  return low;
}

const NGINX = (port) => `user root; worker_processes 1; error_log stderr crit; pid ${folder}/nginx.pid;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 1000000000; keepalive_timeout 600s;
  limit_req_zone $server_name zone=a:1m rate=1000r/s; limit_req_status 429; limit_req_log_level info;
  server { listen 127.0.0.1:${port}; server_name a; root ${folder};
    location / { limit_req zone=a burst=100 nodelay; } } }`;

// Ten connections to a database that needs 10 ms per query; requests wait for one in order.
const NODE = (port) => `let busy = 0; const waiting = [];
function next() {
  while (busy < 10 && waiting.length > 0) {
    const answer = waiting.shift();
    busy += 1;
    setTimeout(() => { busy -= 1; answer.end("ok"); next(); }, 10);
  }
}
require("http").createServer((_, answer) => { waiting.push(answer); next(); }).listen(${port}, "127.0.0.1");`;

function queue(within, words) {
  return async (binary, run, seed) => {
    const all = ["http", "--listen", "127.0.0.1:0", "--workers", "1", "--seed", String(seed), ...words];
    const { child, port } = await target(binary, all);
    const law = await get(`http://127.0.0.1:${port}/throng/law?p=99&within=${within}`);
    const { rate_per_s } = JSON.parse(law);
    return { port, threshold: `http p99 < ${within}`, law: () => rate_per_s, child };
  };
}

const KINDS = {
  "1server": queue("50ms", ["--service", "exponential 1ms"]),
  "8servers": queue("50ms", ["--service", "exponential 8ms", "--servers", "8"]),
  usl: queue("200ms", ["--service", "exponential 20ms", "--usl", "0.05,0.002", "--servers", "16"]),
  users: async (binary) => {
    const words = ["echo", "--listen", "127.0.0.1:0", "--connections-max", "20000"];
    const { child, port } = await target(binary, words);
    return { port, threshold: "errors < 1%", law: () => 20_000, child, users: true };
  },
  nginx: async (_, run) => {
    const port = 21_300 + run;
    fs.writeFileSync(path.join(folder, "index.html"), "ok\n");
    const file = path.join(folder, `nginx-${run}.conf`);
    fs.writeFileSync(file, NGINX(port));
    const child = start("nginx", ["-c", file, "-g", "daemon off;"]);
    return { port, threshold: "errors < 1%", law: lawOfNginx, child };
  },
  node: async (_, run) => {
    const port = 21_400 + run;
    const child = start(process.execPath, ["-e", NODE(port)]);
    const law = () => {
      const words = ["-t1", "-c100", "-d20s", `http://127.0.0.1:${port}/`];
      const ran = spawnSync("wrk", words, { encoding: "utf8" });
      return Number(/Requests\/sec: +([\d.]+)/.exec(ran.stdout)[1]);
    };
    return { port, threshold: "http p99 < 100ms", law, child };
  },
};

function scenario({ port, threshold, users }) {
  const rate = "{iterations: 50/s, users: 1000, spacing: poisson, for: 1m}";
  const steps = users ? "{before: [{connect: /}], steps: [{stay: forever}]}" : "{steps: [http: GET /]}";
  return `target: ${users ? "ws" : "http"}://127.0.0.1:${port}
sessions: {s: ${steps}}
load: [${users ? "{users: 1000, for: 1m}" : rate}]
thresholds: ["${threshold}"]
`;
}

async function search(binary, kind, run, options) {
  const seed = options["--seed"] + run;
  const server = await KINDS[kind](binary, run, seed);
  await new Promise((done) => setTimeout(done, 500));
  const file = path.join(folder, `${kind}-${run}.yaml`);
  fs.writeFileSync(file, scenario(server));
  const words = ["capacity", file, "--budget", `${options["--budget"]}s`, "--seed", String(seed), "--json"];
  words.push("--quiet", "--out", path.join(folder, `${kind}-${run}`));
  words.push(...(server.users ? ["--vary", "users", "--from", "1000", "--max", "27000"] : ["--from", "50/s"]));
  const child = start(binary, words);
  let text = "";
  child.stdout.on("data", (part) => (text += part));
  await new Promise((done) => child.on("close", done));
  const law = server.law();
  server.child.kill();
  return { kind, law, ...JSON.parse(text).capacity };
}

async function main() {
  const [binary, ...words] = process.argv.slice(2);
  const options = { "--runs": 10, "--at-once": 10, "--budget": 1_200, "--seed": 1, "--only": Object.keys(KINDS).join() };
  while (words.length > 0) {
    const word = words.shift();
    if (!(word in options)) throw new Error(`${word}: expected ${Object.keys(options).join(", ")}`);
    options[word] = word === "--only" ? words.shift() : Number(words.shift());
  }
  if (!binary) throw new Error("usage: search-laws.js THRONG [--runs N] [--at-once N] [--budget S] [--seed N] [--only KINDS]");
  const waiting = options["--only"].split(",").flatMap((kind) =>
    Array.from({ length: options["--runs"] }, (_, run) => ({ kind, run })),
  );
  console.log("| target | law | interval | holds the law | promise | promise / law | half-width |");
  console.log("| --- | ---: | --- | --- | ---: | ---: | ---: |");
  const lane = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const found = await search(binary, next.kind, next.run, options);
      const { kind, law, carries, low, high, basis } = found;
      const holds = basis !== "interval" ? basis : low <= law && law <= high ? "yes" : "**no**";
      const cells = [kind, law.toFixed(1), `${low?.toFixed(1)} to ${high?.toFixed(1)}`, holds, carries];
      cells.push((carries / law).toFixed(3), `${((100 * (high - low)) / (high + low)).toFixed(1)} %`);
      console.log(`| ${cells.join(" | ")} |`);
    }
  };
  await Promise.all(Array.from({ length: options["--at-once"] }, lane));
}

main()
  .catch((error) => {
    console.error(error.message);
    process.exitCode = 2;
  })
  .finally(() => {
    for (const child of children) child.kill();
    fs.rmSync(folder, { recursive: true });
  });
