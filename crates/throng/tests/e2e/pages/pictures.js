// Takes pictures of pages in Chromium, and holds each against the one that is kept.
// Input: { folder, made, byte, pages: [{ url, name, width, height, theme, language, selector, shows }] }.
const puppeteer = require("puppeteer-core");
const { existsSync, readFileSync, writeFileSync } = require("fs");

/** Of a block of so many pixels a side it is said how many differ. */
const BLOCK = 32;

// Runs in the browser, which reads PNG: two pictures as data, and by how much a byte may differ.
async function compare(before, after, byte, side) {
  const pixels = async (text) => {
    const image = new Image();
    image.src = `data:image/png;base64,${text}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  };
  const [one, other] = [await pixels(before), await pixels(after)];
  if (one.width !== other.width || one.height !== other.height) return { whole: 1, block: 1, at: [0, 0] };
  const columns = Math.ceil(one.width / side);
  const blocks = new Uint32Array(columns * Math.ceil(one.height / side));
  let differs = 0;
  for (let at = 0; at < one.data.length; at += 4) {
    const colour = [0, 1, 2].some((part) => Math.abs(one.data[at + part] - other.data[at + part]) > byte);
    if (!colour) continue;
    differs += 1;
    const [x, y] = [(at / 4) % one.width, Math.floor(at / 4 / one.width)];
    blocks[Math.floor(y / side) * columns + Math.floor(x / side)] += 1;
  }
  const most = blocks.reduce((best, count, at) => (count > blocks[best] ? at : best), 0);
  const place = [(most % columns) * side, Math.floor(most / columns) * side];
  return { whole: differs / (one.width * one.height), block: blocks[most] / side ** 2, at: place };
}

(async () => {
  const { folder, made, byte, pages } = JSON.parse(process.argv[2]);
  const args = ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb", "--font-render-hinting=none", "--disable-lcd-text", "--hide-scrollbars"];
  const browser = await puppeteer.launch({ executablePath: process.argv[3], args, env: process.env });
  const page = await browser.newPage();
  const judge = await browser.newPage();
  const told = [];
  for (const { url, name, width, height, theme, language, selector, shows } of pages) {
    await page.bringToFront();
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
    await page.setViewport({ width, height, deviceScaleFactor: 1 });
    await page.goto(url, { waitUntil: "load" });
    // "…" stands for what is still read.
    const isThere = (selector, shows) => {
      const text = document.querySelector(selector)?.textContent;
      return text !== undefined && text.includes(shows) && !text.includes("…");
    };
    const drawn = () => page.waitForFunction(isThere, {}, selector, shows);
    await drawn();
    if (language === "zh") {
      await page.click("#language");
      await page.waitForFunction(() => document.querySelector("#language")?.textContent === "English");
      await drawn();
    }
    // No mouse over a button, no cursor in a chart.
    await page.mouse.move(0, 0);
    await page.evaluate(async () => {
      await document.fonts.ready;
      for (let frames = 0; frames < 5; frames += 1) await new Promise(requestAnimationFrame);
    });
    const taken = Buffer.from(await page.screenshot({ type: "png", optimizeForSpeed: false }));
    const [kept, fresh] = [`${folder}/${name}.png`, `${made}/${name}.png`];
    writeFileSync(fresh, taken);
    if (!existsSync(kept)) {
      told.push({ name, fresh, bytes: taken.length, missing: true });
      continue;
    }
    const [before, after] = [readFileSync(kept).toString("base64"), taken.toString("base64")];
    const held = await judge.evaluate(compare, before, after, byte, BLOCK);
    told.push({ name, fresh, bytes: taken.length, ...held });
  }
  await browser.close();
  console.log(JSON.stringify(told));
})();
