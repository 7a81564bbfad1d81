// Starts the page: a report contains its figures; other pages ask the server that they come from.

import { read } from "./data";
import { browse, showComparison } from "./folder";
import { watch } from "./live";
import { show } from "./report";
import { speak } from "./words";

document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
const data = read();
speak(data.language);
if (data.connect === "live") watch();
else if (data.connect === "folder") browse();
else if (data.compared) showComparison(data.compared);
else show(data);
