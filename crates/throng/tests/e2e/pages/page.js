// Opens a page in Chromium and says what a person finds on it: texts, figures, what it asked of the
// network, what it complained about, and what people who cannot see or point would stumble over.
const puppeteer = require("puppeteer-core");
const { readFileSync } = require("fs");

(async () => {
  const [path, chromium] = process.argv.slice(2);
  const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  const page = await browser.newPage();
  const [errors, requests] = [[], []];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (line) => line.type() === "error" && errors.push(line.text()));
  page.on("request", (request) => requests.push(request.url()));
  page.on("dialog", (dialog) => {
    errors.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  const told = { widths: {} };
  await page.goto(`file://${path}`);
  for (const width of [390, 1280, 2560]) {
    await page.setViewport({ width, height: 900 });
    told.widths[width] = await page.evaluate(() => document.documentElement.scrollWidth);
  }
  await page.setViewport({ width: 1280, height: 900 });
  const texts = (selector) => page.$$eval(selector, (all) => all.map((one) => one.textContent));
  told.title = await page.title();
  told.badge = (await texts(".badge"))[0];
  told.cards = await texts(".card");
  told.headings = await texts("h2");
  told.facts = (await texts("header p"))[0];
  told.charts = await texts("figcaption");
  told.rows = await page.$$eval("#tables tbody tr", (rows) =>
    rows.map((row) => [...row.cells].map((cell) => cell.textContent)),
  );
  told.captions = await texts("caption");
  told.errors_table = await texts("#errors td");
  told.evidence = await texts("#errors pre");
  const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  const look = async () => {
    const found = await page.evaluate(async () => (await window.axe.run()).violations);
    return found.map((one) => `${one.id}: ${one.nodes[0].html} ${one.nodes[0].failureSummary}`);
  };
  // By the devtools, as the page lets nothing in.
  await page.evaluate(axe);
  told.violations = await look();
  // By the buttons, which keys reach, too; the heat map follows.
  const heat = () => page.$$eval(".heat .columns span", (all) => all.map((one) => one.textContent));
  told.heat = [await heat()];
  for (const name of ["Zoom in", "Later", "Reset zoom"]) {
    await page.$eval(`button[aria-label="${name}"]`, (button) => button.focus());
    await page.keyboard.press("Enter");
    await page.evaluate(() => new Promise((done) => setTimeout(done, 100)));
    told.heat.push(await heat());
  }
  // By keys alone, where the charts have the focus.
  const settled = () => page.evaluate(() => new Promise((done) => setTimeout(done, 100)));
  await page.focus("#time .charts");
  told.keys = [];
  for (const key of ["+", "ArrowLeft", "ArrowRight", "-", "0"]) {
    await page.keyboard.press(key);
    await settled();
    told.keys.push(await heat());
  }
  // The charts of another step show what the others show.
  await page.keyboard.press("+");
  await settled();
  told.joined = [await heat()];
  const options = await page.$$eval("#by-step option", (all) => all.map((one) => one.value));
  await page.select("#by-step select", options.at(-1));
  await settled();
  told.joined.push(await heat());
  told.steps = options.length;
  told.funnel = await page.$$eval(".funnel li", (rows) => rows.map((row) => row.textContent));
  await page.click("#theme");
  told.violations.push(...(await look()));
  await page.click("#language");
  told.chinese = await texts("h2");
  // Sorting by a column.
  await page.click("#tables thead th:nth-child(2) button");
  told.sorted = await page.$eval("#tables thead th:nth-child(2)", (head) => head.getAttribute("aria-sort"));
  told.pwned = await page.evaluate(() => Boolean(window.pwned) || document.querySelectorAll("img").length > 0);
  await browser.close();
  console.log(JSON.stringify({ ...told, errors, requests }));
})();
