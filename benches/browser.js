// Measures a report in headless Chromium: the time until the first chart is drawn, and the frames per
// second while it is zoomed. Usage: `node browser.js URL CHROMIUM`; prints JSON.
const puppeteer = require("puppeteer-core");

const ZOOM_MS = 3000;

// In the page: the time from navigation until the first chart was painted.
const watch = () => {
  const look = () => {
    if (document.querySelector("#time canvas")) {
      // What is in this frame is painted by the next one.
      requestAnimationFrame(() => (window.drawnAt = performance.now()));
      return;
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
};

// In the page: the frames per second while `act` runs repeatedly, and the longest frame.
const frames = (length, act) =>
  new Promise((done) => {
    const work = new Function("at", act);
    const times = [performance.now()];
    const frame = (now) => {
      times.push(now);
      if (now - times[0] >= length) {
        const gaps = times.slice(1).map((time, at) => time - times[at]);
        done({ per_s: (1000 * gaps.length) / (times.at(-1) - times[0]), longest_ms: Math.max(...gaps) });
        return;
      }
      work(times.length);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });

(async () => {
  const [url, chromium] = process.argv.slice(2);
  const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"], protocolTimeout: 120_000 });
  const page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 900 });
  await page.evaluateOnNewDocument(watch);
  const first = [];
  for (let round = 0; round < 3; round += 1) {
    await page.goto(url);
    await page.waitForFunction(() => window.drawnAt !== undefined);
    first.push(await page.evaluate(() => window.drawnAt));
  }
  await page.evaluate(() => document.querySelector("#time").scrollIntoView());
  // The buttons: zoom in, out and to the side; each frame shows a different range.
  const buttons = "const all = document.querySelectorAll('#time .bar button'); all[[0, 0, 3, 2, 1, 1][at % 6]].click();";
  const clicked = await page.evaluate(frames, ZOOM_MS, buttons);
  // The mouse: drag over a chart to zoom, double-click to reset.
  const box = await (await page.$("#time .u-over")).boundingBox();
  const counting = page.evaluate(frames, ZOOM_MS, "");
  const begun = Date.now();
  for (let at = 0; Date.now() - begun < ZOOM_MS - 300; at += 1) {
    const [from, to] = [box.x + box.width * 0.2, box.x + box.width * 0.7];
    await page.mouse.move(from, box.y + 40);
    await page.mouse.down();
    for (let step = 1; step <= 10; step += 1) await page.mouse.move(from + ((to - from) * step) / 10, box.y + 50);
    await page.mouse.up();
    await page.mouse.click(from, box.y + 40, { count: 2 });
  }
  const dragged = await counting;
  await browser.close();
  console.log(JSON.stringify({ first_ms: first, clicked, dragged }));
})();
