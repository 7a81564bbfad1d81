// Builds dist/report.html: the page with its styles and its code in one file. `"throng-data"` in it is
// replaced by the data of a run.
import { build } from "esbuild";
import { mkdir, readFile, writeFile } from "node:fs/promises";

const bundled = async (entry) => {
  const options = { entryPoints: [entry], bundle: true, minify: true, write: false };
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
