// Watches a run in Chromium: one viewer straight, one through a proxy whose connections are cut and
// which lets nobody through for a while. Steers it from the page, and says what both saw.
const puppeteer = require("puppeteer-core");
const { mkdtempSync, readFileSync, readdirSync, rmSync } = require("fs");
const { tmpdir } = require("os");
const net = require("net");

// A port through which `to` is reached, until it is told to be deaf.
function proxy(to) {
  const sockets = new Set();
  let deaf = false;
  const server = net.createServer((near) => {
    if (deaf) return near.destroy();
    const far = net.connect(to, "127.0.0.1");
    for (const [one, other] of [[near, far], [far, near]]) {
      sockets.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  const cut = (is) => {
    deaf = is;
    if (is) sockets.forEach((socket) => socket.destroy());
  };
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done({ port: server.address().port, cut, server })));
}

(async () => {
  const [link, chromium, pictures] = process.argv.slice(2);
  const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  const errors = [];
  const open = async (url) => {
    const page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 900 });
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("dialog", (dialog) => dialog.dismiss());
    await page.goto(url, { waitUntil: "load" });
    return page;
  };
  const url = new URL(link);
  const through = await proxy(Number(url.port));
  const one = await open(link);
  const proxied = new URL(link);
  proxied.port = String(through.port);
  const two = await open(String(proxied));
  const both = [one, two];
  const patient = { timeout: 90_000, polling: 100 };
  const seconds = (page) => page.evaluate(() => window.throng?.seconds ?? 0);
  const reach = (page, wanted) => page.waitForFunction((wanted) => (window.throng?.seconds ?? 0) >= wanted, patient, wanted);
  const text = (page, selector) => page.$eval(selector, (it) => it.textContent);
  // Where a wait that fails has left the pages.
  process.on("unhandledRejection", async (reason) => {
    const state = (page) =>
      page.evaluate(() => ({ hidden: document.hidden, seconds: window.throng?.seconds, badge: document.querySelector(".badge")?.textContent, selected: String(getSelection()) })).catch(String);
    console.error(reason, JSON.stringify({ pages: await Promise.all(both.map(state)), errors }));
    process.exit(1);
  });
  // Only the front page is drawn: each looks at its own.
  const front = async (page, work) => {
    await page.bringToFront();
    return work();
  };

  await Promise.all(both.map((page) => reach(page, 2)));
  const told = {};
  await front(one, () => one.waitForSelector("#time figure", patient));
  told.badge = await text(one, ".badge");
  told.charts = await one.$$eval("figcaption", (all) => all.map((it) => it.textContent));
  // A filter and a sorting stay while figures come.
  await one.waitForSelector("#tables thead th:nth-child(2) button", patient);
  await one.click("#tables thead th:nth-child(2) button");
  const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  await one.evaluate(axe);
  const found = await one.evaluate(async () => (await window.axe.run()).violations);
  told.violations = found.map((it) => `${it.id}: ${it.nodes[0].html} ${it.nodes[0].failureSummary}`);
  const picture = async (name) => {
    if (pictures) await one.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
  };
  await picture("live");

  // Cut off for longer than a browser takes to come back.
  through.cut(true);
  await front(two, () => two.waitForFunction(() => document.querySelector(".badge").textContent.includes("connection lost"), patient));
  const left = await seconds(two);
  await reach(one, left + 3);
  told.missed = (await seconds(one)) - (await seconds(two));
  through.cut(false);
  await reach(two, left + 4);
  told.back = await text(two, ".badge");

  // More load, and a mark.
  await front(one, () => one.click(".more"));
  await one.waitForFunction(() => document.querySelector("#answer").textContent !== "", patient);
  told.more = await text(one, "#answer");
  await one.type("#mark-name", "<b>here</b>");
  await one.click(".mark");
  await one.waitForFunction(() => document.querySelector("#answer").textContent.startsWith("marked"), patient);
  told.sorted = await one.$eval("#tables thead th:nth-child(2)", (head) => head.getAttribute("aria-sort"));
  // What a viewer points at stays the same element while figures arrive, and keeps its focus.
  await one.$eval("#tables thead th:nth-child(2) button", (it) => {
    it.isPointedAt = true;
    it.focus();
  });
  const count = () => one.$eval("#tables tbody td", (it) => it.textContent);
  const before = await count();
  const at = await seconds(one);
  await Promise.all(both.map((page) => reach(page, at + 3)));
  await one.waitForFunction((before) => document.querySelector("#tables tbody td").textContent !== before, patient, before);
  told.stays = await one.evaluate(() => document.activeElement.isPointedAt === true);
  // The same seconds at both, as far as both have them: no gap, nothing twice.
  const columns = await Promise.all(
    both.map((page) => page.evaluate(() => ({ ok: window.throng.series.ok, step: window.throng.series.steps[0].ok, at: window.throng.series.steps[0].at, marks: window.throng.events.filter((it) => it.kind === "mark").map((it) => it.text) }))),
  );
  const length = Math.min(...columns.map((it) => it.ok.length)) - 1;
  told.columns = columns.map((it) => ({ ok: it.ok.slice(0, length), step: it.step.slice(0, length), at: it.at.slice(0, length) }));
  told.marks = columns.map((it) => it.marks);

  // A rate and a number of users that are typed; the other viewer is told what the run wants now.
  const level = (page, at) => page.$$eval(".level input", (all, at) => all[at].value, at);
  const type = async (at, value, sent) => {
    const before = await text(one, "#answer");
    const [field, set] = [(await one.$$(".level input"))[at], (await one.$$(".level button"))[at]];
    await field.click({ clickCount: 3 });
    await field.type(value);
    await (sent === "Enter" ? field.press("Enter") : set.click());
    await one.waitForFunction((before) => document.querySelector("#answer").textContent !== before, patient, before);
    return text(one, "#answer");
  };
  told.wanted = [await level(one, 0), await level(one, 1)];
  told.rate = await type(1, "300", "Enter");
  await two.waitForFunction(() => document.querySelectorAll(".level input")[1].value === "300", patient);
  told.users = await type(0, "7", "Set");
  told.zero = await type(1, "0", "Set");
  told.stayed = [await level(one, 0), await level(one, 1)];

  // What is saved while the run goes on.
  told.saved = await one.$$eval(".saves a", (all) =>
    Promise.all(
      all.map(async (it) => {
        const answer = await fetch(it.href);
        const told = { status: answer.status, name: answer.headers.get("content-disposition") };
        if (it.textContent === "CSV") return { ...told, lines: (await answer.text()).split("\r\n") };
        if (it.textContent !== "JSON") return told;
        const { run, total } = await answer.json();
        return { ...told, ended: run.ended, count: total.count };
      }),
    ),
  );
  const folder = mkdtempSync(`${tmpdir()}/throng-saved-`);
  const client = await one.createCDPSession();
  await client.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder });
  await front(one, () => one.click(".saves a:last-child"));
  let file;
  while (!file?.endsWith(".html")) {
    await one.waitForFunction(() => true);
    [file] = readdirSync(folder);
  }
  const page = await open(`file://${folder}/${file}`);
  told.page = { file, badge: await text(page, ".badge"), notice: await text(page, ".notice"), controls: (await page.$$("#controls")).length };
  await page.close();
  await one.bringToFront();
  rmSync(folder, { recursive: true });

  // Who looks at a part of the time goes on with that, in the heat map as well, which is drawn
  // again now and then.
  const heat = () => one.$$eval(".heat .columns span", (all) => all.map((it) => it.textContent));
  const [begin] = await heat();
  await one.click('#time button[aria-label="Zoom in"]');
  await one.waitForFunction((begin) => document.querySelector(".heat .columns span").textContent !== begin, patient, begin);
  told.zoomed = [await heat()];
  for (let round = 0; round < 2; round += 1) {
    await one.$eval(".heat", (it) => (it.dataset.old = "yes"));
    await one.waitForSelector(".heat:not([data-old])", patient);
    told.zoomed.push(await heat());
  }

  // The end.
  await one.click(".stop");
  told.asks = await text(one, ".stop");
  await one.click(".stop");
  const over = (page) => page.waitForFunction(() => document.querySelector(".badge").textContent.includes("exit code"), patient);
  await Promise.all(both.map(over));
  told.ends = [];
  for (const page of both) {
    told.ends.push(
      await front(page, async () => ({
        badge: await text(page, ".badge"),
        total: await page.evaluate(() => window.throng.summary.total),
        ok: await page.evaluate(() => window.throng.series.ok),
        rows: await page.$$eval("#tables tbody tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))),
        controls: await page.$$eval("#controls", (all) => all.length),
      })),
    );
  }
  // Its server is gone: what is loaded goes on.
  await one.bringToFront();
  await one.waitForFunction(() => fetch("/").then(() => false, () => true), patient);
  await one.click("#language");
  told.chinese = await one.$$eval("h2", (all) => all.map((it) => it.textContent));
  await picture("end");
  await browser.close();
  through.server.close();
  console.log(JSON.stringify({ ...told, errors }));
  process.exit(0);
})();
