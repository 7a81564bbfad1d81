// Builds dist/report.html: the page with its styles and its code in one file. `"throng-data"` in it is
// replaced by the data of a run.
import { build } from "esbuild";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";

// The build in a folder of its own (`cargo xtask web`) says where it is.
const CATALOGUE = process.env.CATALOGUE ?? "../crates/throng-base/words/zh.txt";

// What throng's catalogue has of the texts in the page: a line in English, below it one in Chinese.
const catalogue = async () => {
  const files = (await readdir("src")).filter((name) => name.endsWith(".ts"));
  const sources = await Promise.all(files.map((name) => readFile(`src/${name}`, "utf8")));
  const texts = new Set(sources.flatMap((source) => [...source.matchAll(/"([^"\n]+)"/g)].map((found) => found[1])));
  const lines = (await readFile(CATALOGUE, "utf8")).split("\n");
  const told = lines.flatMap((line, at) => (texts.has(line) && lines[at + 1]?.startsWith("\t") ? [[line, lines[at + 1].trim()]] : []));
  return JSON.stringify(Object.fromEntries(told));
};
const define = { catalogue: await catalogue() };

const bundled = async (entry) => {
  const options = { entryPoints: [entry], bundle: true, minify: true, write: false, define };
  const made = await build({ ...options, target: "es2022", legalComments: "none", charset: "ascii" });
  return made.outputFiles[0].text.trim();
};
const [style, code, page] = await Promise.all([
  bundled("src/style.css"),
  bundled("src/main.ts"),
  readFile("src/page.html", "utf8"),
]);
const whole = page
  .replace("/* style */", () => style)
  .replace("/* code */", () => code.replaceAll("</script", "<\\/script"));
await mkdir("dist", { recursive: true });
await writeFile("dist/report.html", whole);
