// SPDX-License-Identifier: Apache-2.0
// gate_page_test.js: put after the page by test_gate_page.sh. Uses the page as a reader does (clicks, words in the
// filter, a choice), looks at what came of it, and writes "passed" or what is wrong at the end of the page.

const wrong = [];
let looks = 0;
const see = (what, found, expected = true) => {
  looks++;
  if (JSON.stringify(found) !== JSON.stringify(expected))
    wrong.push(`${what}: ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
};
window.addEventListener("error", (event) => wrong.push(`error: ${event.message}`));

const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const cases = () => all("#cases tbody tr[data-row]");
const visible = () => cases().filter((row) => row.getClientRects().length > 0);
const title = (word) => all("#cases thead th").find((th) => th.textContent === word);
const column = (word) => all("#cases thead th").indexOf(title(word));
const values = (word) =>
  cases().map((row) => row.cells[column(word)].dataset.value).map((v) => v === undefined ? null : Number(v));
const click = (element) => element.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
const type = (words) => {
  const input = document.getElementById("words");
  input.value = words;
  input.dispatchEvent(new Event("input", {bubbles: true}));
};
const shown = () => document.getElementById("shown").textContent;
const count = cases().length;

function checkStart() {
  see("cases", count, 50);
  see("shown at first", shown(), "50 of 50 cases shown");
  see("first verdict", cases()[0].className, "slower");
  see("nothing was loaded", performance.getEntriesByType("resource").length, 0);
  see("caption", document.querySelector("#cases caption") !== null);
  see("headings of rows", all("#cases tbody th[scope=row]").length, count);
  see("headings of columns", all("#cases thead th:not([scope=col])").length, 0);
  see("sections with a name", all("section:not([aria-labelledby])").length, 0);
}

// The page's names that would be markup: none became an element, each is text.
function checkHostile() {
  see("no name ran", document.documentElement.dataset.hacked === undefined);
  see("no name is an element", all("img, b, iframe").length, 0);
  see("scripts", document.scripts.length, 4);  // data, the page's, and two of this test
  const names = cases().map((row) => row.querySelector(".name").textContent);
  see("a name with a script is text", names.filter((name) => name.startsWith("<\/script><script>")).length, 1);
  see("a name with an image is text", names.filter((name) => name.includes("<img src=x")).length, 1);
  see("a control character is told", names.filter((name) => name.includes("\\x1b[31m")).length, 1);
}

// Numbers go down or up, and what has none stands last.
function isSorted(list, sign) {
  const known = list.filter((v) => v !== null);
  return known.every((v, i) => i === 0 || sign * (v - known[i - 1]) >= 0) &&
    list.slice(0, known.length).every((v) => v !== null);
}

function checkSorting() {
  const click2 = (word, states) => {
    for (const state of states) {
      click(title(word).querySelector("button"));
      see(`${word} is marked ${state}`, title(word).getAttribute("aria-sort"), state);
      see(`only ${word} is marked`, all("#cases thead th[aria-sort]").length, 1);
      if (word !== "case") see(`${word} is sorted ${state}`, isSorted(values(word), state === "ascending" ? 1 : -1));
    }
  };
  see("has cases without a change", values("change").includes(null));
  for (const word of ["change", "base", "head", "bandwidth", "arithmetic", "of roof"])
    click2(word, ["descending", "ascending"]);
  click2("case", ["ascending"]);
  const names = cases().map((row) => row.querySelector(".name").textContent.toLowerCase());
  see("cases are sorted", names, [...names].sort((a, b) => a.localeCompare(b, "en", {numeric: true})));
  click2("verdict", ["ascending"]);
  see("verdict sorts what matters first", [cases()[0].className, cases()[count - 1].className], ["slower", "same"]);
}

function checkFilter() {
  type("softmax 4096");
  const found = visible();
  see("some are found", found.length > 0 && found.length < count);
  see("all have the words", found.every((row) => /softmax/.test(row.textContent) && /4096/.test(row.textContent)));
  see("the number is told", shown(), `${found.length} of ${count} cases shown`);
  type("no such case");
  see("none is found", [visible().length, shown()], [0, `0 of ${count} cases shown`]);
  type("");
  const same = all("#verdicts button").find((button) => button.textContent.startsWith("same"));
  click(same);
  see(
    "same is off", [same.getAttribute("aria-pressed"), visible().filter((row) => row.className === "same").length],
    ["false", 0]);
  see("the others stay", visible().length, count - Number(same.textContent.split(" ")[1]));
  click(same);
  see("all are back", visible().length, count);
}

// A case's details: a mark for each sample, gone with its row, in the order of its row.
function checkDetails() {
  const row = cases().find((r) => r.className === "slower"), button = row.querySelector("button.open");
  click(button);
  const detail = document.getElementById(button.getAttribute("aria-controls"));
  see(
    "it is open", [button.getAttribute("aria-expanded"), detail.hidden, detail.previousSibling === row],
    ["true", false, true]);
  see("samples", all("svg circle", detail).length, 2 * 16 * 5);
  see(
    "the drawing has a name",
    detail.querySelector("svg").getAttribute("aria-label").startsWith("Times of all samples: base "));
  see("facts", all("dt", detail).length > 3);
  click(title("head").querySelector("button"));
  see("details follow their row", detail.previousSibling === row);
  type("no such case");
  see("details go with their row", detail.hidden);
  type("");
  see("and come back", detail.hidden, false);
  click(button);
  see("it is closed", [button.getAttribute("aria-expanded"), detail.hidden], ["false", true]);
  const far = document.querySelector('tr[data-row="9"] button.open');
  click(far);
  const told = document.getElementById(far.getAttribute("aria-controls"));
  see("far samples are told",
      /2 of 160 samples lie beyond the axis, as far as [\d.]+ ms; an arrow/.test(told.textContent));
  see("and have arrows", all("svg path", told).filter((path) => /v-7z$/.test(path.getAttribute("d"))).length, 2);
  see("the others are dots", all("svg circle", told).length, 158);
  see("no other case tells it", detail.textContent.includes("beyond the axis"), false);
  click(far);
  for (const other of all("button.open")) click(other);
  see("all open", all("tr.detail:not([hidden])").length, count);
  for (const other of all("button.open")) click(other);
  click(title("verdict").querySelector("button"));
}

function checkPlots() {
  const roofline = document.getElementById("roofline");
  see("roofline", roofline.hidden, false);
  see("marks of the roofline", all("svg g title", roofline).length > 10);
  const roofs = all("svg text.roof", roofline), points = all("svg text.point", roofline),
        taken = [...roofs.slice(1), ...points];
  see(
    "roofs have names and units", roofs.map((text) => text.textContent).sort(),
    ["f32, by a product: 120 GFLOP/s", "f64, by a product: 60 GFLOP/s", "memory, by a copy: 20 GB/s"]);
  see("points have names", points.length > 5 && points.every((text) => text.textContent.length > 3));
  see("what changed has one first", points.some((text) => text.textContent.startsWith("product f32 tn 64x64")));
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom - 2 && b.top < a.bottom - 2;
  const boxes = taken.map((text) => text.getBoundingClientRect()),
        plot = roofline.querySelector("svg").getBoundingClientRect();
  see("names keep off each other", boxes.some((a, i) => boxes.some((b, k) => i < k && meet(a, b))), false);
  see("names are in the plot", boxes.every((a) => a.left >= plot.left && a.right <= plot.right));
  see(
    "the others are told", /(\d+) points have no room for a name/.exec(roofline.textContent)[1],
    String(all("svg g title", roofline).length - points.length));
  see("the axis has units",
      all("svg text.quiet", roofline).filter((text) => /^\d+ GFLOP\/s$/.test(text.textContent)).length >= 3);
  see("what the lines are is told", roofline.textContent.includes("Lines: the best that host did in this run"));
  see("bars", all("#bandwidth .bars li").length > 3);
  const history = document.getElementById("history"), select = history.querySelector("select");
  see("history's runs", all("svg circle", history).length, 40);
  see("its change", /^\+4\.5 % at [0-9a-f]{10}: /.test(history.querySelector(".changes li").textContent));
  select.value = "1";
  select.dispatchEvent(new Event("change"));
  see("the other history", history.querySelector(".changes li").textContent.startsWith("\u22127.0 % at "));
  const bad =
    all("svg *").flatMap((element) => [...element.attributes]).filter((a) => /NaN|Infinity|undefined/.test(a.value));
  see("no number is none", bad.length, 0);
  see("no text is none", /NaN|Infinity|undefined/.test(document.body.innerText), false);
}

// Contrast as WCAG 2 defines it: 4.5 for text, 3 for marks.
function luminance(color) {
  const parts = color.match(/\d+(\.\d+)?/g)
                  .slice(0, 3)
                  .map((v) => v / 255)
                  .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}

function contrast(one, other) {
  const spot = document.body.appendChild(document.createElement("span"));
  const [a, b] = [one, other].map((name) => {
    spot.style.color = `var(--${name})`;
    return luminance(getComputedStyle(spot).color);
  });
  spot.remove();
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

function checkColors(dark) {
  see("dark or light", luminance(getComputedStyle(document.body).backgroundColor) < 0.2, dark);
  for (const name
         of ["text", "quiet", "slower", "faster", "unsure", "failed", "same", "missing", "base", "head", "focus"]) {
    for (const back of ["back", "panel"])
      see(`${name} on ${back}: ${contrast(name, back).toFixed(2)}`, contrast(name, back) >= 4.5);
  }
}

// On a phone nothing is wider than the screen, details and plots too.
function checkNarrow() {
  see("width", innerWidth, 375);
  for (const button of all("button.open").slice(0, 12)) click(button);
  see("nothing sticks out", document.documentElement.scrollWidth <= innerWidth);
  const scroll = document.querySelector(".scroll");
  see("the table fits", scroll.scrollWidth <= scroll.clientWidth + 1);
  for (const svg of all("figure svg, .detail svg"))
    see("a plot fits", svg.getBoundingClientRect().right <= innerWidth + 1);
  see(
    "text is readable",
    all("td, th, dd, dt, p").every((element) => parseFloat(getComputedStyle(element).fontSize) >= 12));
}

try {
  const wanted = document.documentElement.dataset.test || "wide";
  checkStart();
  checkHostile();
  checkColors(wanted === "narrow");
  if (wanted === "narrow") {
    checkNarrow();
  } else {
    checkSorting();
    checkFilter();
    checkDetails();
    checkPlots();
  }
} catch (error) {
  wrong.push(String(error.stack || error));
}
const told = document.body.appendChild(document.createElement("pre"));
told.id = "told";
told.textContent = wrong.length ? "WRONG\n" + wrong.join("\n") + "\nEND" : `PASSED ${looks} looks\nEND`;
