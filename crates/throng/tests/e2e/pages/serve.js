// Goes through the page of a folder of runs in Chromium: list, report, comparison, trends, a run that
// is started, and its live page. Says what it saw.
const puppeteer = require("puppeteer-core");
const { readFileSync } = require("fs");

(async () => {
  const [link, chromium, pictures] = process.argv.slice(2);
  const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  const page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 900 });
  const [errors, violations, told] = [[], [], { widths: {} }];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (line) => line.type() === "error" && errors.push(line.text()));
  const patient = { timeout: 30_000, polling: 100 };
  const texts = (selector) => page.$$eval(selector, (all) => all.map((it) => it.textContent));
  const rows = (selector) => page.$$eval(`${selector} tbody tr`, (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent.trim())));
  const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  const look = async (name) => {
    await page.evaluate(axe);
    const found = await page.evaluate(async () => (await window.axe.run()).violations);
    violations.push(...found.map((it) => `${name}: ${it.id}: ${it.nodes[0].html} ${it.nodes[0].failureSummary}`));
    for (const width of [390, 1280]) {
      await page.setViewport({ width, height: 900 });
      told.widths[`${name} ${width}`] = (await page.evaluate(() => document.documentElement.scrollWidth)) - width;
    }
    if (pictures) await page.screenshot({ path: `${pictures}/serve-${name}.png`, fullPage: true });
  };
  const seen = (selector, wanted = 1) => page.waitForFunction((selector, wanted) => document.querySelectorAll(selector).length >= wanted, patient, selector, wanted);
  const home = async () => {
    await page.click("nav a");
    await seen("#runs tbody tr");
  };

  await page.goto(link);
  await seen("#runs tbody tr");
  // Figures come as they are read.
  await page.waitForFunction(() => !document.querySelector("#runs").textContent.includes("…"), patient);
  told.list = await rows("#runs");
  told.passed_over = await texts("#list details li");
  await look("list");

  // Sorted by p99, and still so when the list is asked for again.
  const heads = await texts("#runs th[scope=col]");
  await page.click(`#runs thead th:nth-child(${heads.indexOf("p99") + 1}) button`);
  told.sorted = await rows("#runs");

  await page.click("#runs tbody tr:last-child a");
  await seen("#tables tbody tr");
  told.report = { badge: (await texts(".badge"))[0], title: await page.title(), total: await page.evaluate(() => window.throng.summary.total.count) };
  told.saves = await page.$$eval(".saves a", (all) =>
    Promise.all(all.map((it) => fetch(it.href).then(async (answer) => [answer.status, answer.headers.get("content-disposition"), (await answer.text()).slice(0, 40)]))),
  );
  await look("report");
  await home();

  for (const at of [1, 2]) await page.click(`#runs tbody tr:nth-child(${at}) input`);
  await page.click("#compare");
  await seen("#time figure", 3);
  told.compare = { charts: await texts("#time figcaption"), legend: await texts("#time figure:first-child .u-legend .u-label"), rows: (await page.$$("table tbody tr")).length };
  await look("compare");
  await home();

  await page.click('a[href="#trends"]');
  await seen(".trend svg", 2);
  told.trends = { titles: await texts(".trend h2"), runs: (await page.$$(".trend tbody tr")).length };
  await look("trends");
  // The oldest run as the baseline: it is marked, and the others say how they differ from it.
  const oldest = await page.$eval(".trend select option:last-child", (option) => option.value);
  await page.select(".trend select", oldest);
  await seen(".spark line", 1);
  told.baseline = await page.$$eval(".trend tbody tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  told.baseline_is = oldest;
  await look("baseline");
  await home();

  // A scenario with a value of one's own, and for another time.
  await page.select("#scenario", "shop.yaml");
  told.inputs = await page.$$eval("#variables input", (all) => all.map((it) => [it.name, it.placeholder, it.type]));
  await page.type("#variables input[name=rate]", "80");
  // What the flag refuses is refused here as well.
  await page.type("#load input[name=duration]", "0");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#begun").textContent !== "", patient);
  told.refused = await page.$eval("#begun", (it) => it.textContent);
  await look("start");
  await page.click("#load input[name=duration]", { clickCount: 3 });
  await page.type("#load input[name=duration]", "12s");
  await page.click("#start");
  await page.waitForFunction((before) => document.querySelector("#begun").textContent !== before, patient, told.refused);
  told.begun = await page.$eval("#begun", (it) => it.textContent);
  // One at a time.
  await page.click("#start");
  await page.waitForFunction((before) => document.querySelector("#begun").textContent !== before, patient, told.begun);
  told.second = await page.$eval("#begun", (it) => it.textContent);
  await seen("#started a[target=_blank]");
  const live = await page.$eval("#started a[target=_blank]", (it) => it.href);
  const watched = await browser.newPage();
  await watched.goto(live);
  await watched.waitForFunction(() => (window.throng?.seconds ?? 0) >= 1, patient);
  told.live = await watched.$eval(".badge", (it) => it.textContent);
  await watched.waitForFunction(() => document.querySelector(".badge").textContent.includes("exit code"), patient);
  told.end = await watched.$eval(".badge", (it) => it.textContent);
  told.count = await watched.evaluate(() => window.throng.summary.total.count);
  await watched.close();
  await page.bringToFront();
  await page.waitForFunction(() => document.querySelector("#started").textContent.includes("exit code 0"), patient);
  told.started = await texts("#started li");
  await seen("#runs tbody tr", told.list.length + 1);

  // One that is wrong says so.
  await page.select("#scenario", "wrong.yaml");
  await page.click("#start");
  await seen("#started pre");
  told.wrong = (await texts("#started pre"))[0];
  await page.click("#language");
  await page.waitForFunction(() => document.querySelector("h1")?.textContent === "运行", patient);
  told.pwned = await page.evaluate(() => Boolean(window.pwned) || document.querySelectorAll("img").length > 0);
  await browser.close();
  console.log(JSON.stringify({ ...told, errors, violations }));
})();
