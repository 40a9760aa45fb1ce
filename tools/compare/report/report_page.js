// SPDX-License-Identifier: Apache-2.0
// report_page.js: makes the table sortable and filterable, opens a case's details, and puts the plots in their places.
// The page is whole without it.

const table = document.getElementById("cases"), body = table.tBodies[0];
const rows = [...body.rows].map((element, place) => ({
  element, place, index: Number(element.dataset.row), verdict: element.className,
  words: element.textContent.toLowerCase(), detail: null,
}));
const names = [];
for (const row of rows) names[row.index] = row.element.querySelector(".name").textContent;
document.documentElement.classList.add("script-on");

// --- sorting: by number where the cells have one, what has none last ---

function keyOf(row, column) {
  const cell = row.element.cells[column];
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  return cell.classList.contains("number") || cell.classList.contains("interval") ? null :
                                                                                    cell.textContent.toLowerCase();
}

const collator = new Intl.Collator("en", {numeric: true});

function sortBy(column, direction) {
  const sign = direction === "ascending" ? 1 : -1;
  const sorted = rows.map((row) => ({row, key: keyOf(row, column)}));
  sorted.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.row.place - b.row.place;
    const order = typeof a.key === "number" ? a.key - b.key : collator.compare(a.key, b.key);
    return sign * order || a.row.place - b.row.place;
  });
  body.replaceChildren(...sorted.flatMap(({row}) => row.detail ? [row.element, row.detail] : [row.element]));
  for (const title of table.tHead.rows[0].cells) title.removeAttribute("aria-sort");
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", direction);
}

[...table.tHead.rows[0].cells].forEach((title, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = title.textContent;
  // Greatest first where that is what one looks for.
  const first = title.classList.contains("number") ? "descending" : "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  button.addEventListener("click", () => sortBy(column, title.getAttribute("aria-sort") === first ? other : first));
  title.replaceChildren(button);
});
table.tHead.rows[0].cells[0].setAttribute("aria-sort", "ascending");

// --- filtering: every word must be in the row, and its verdict be wanted ---

const wanted = new Set(rows.map((row) => row.verdict)), input = document.getElementById("words");

function applyFilter() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const show = wanted.has(row.verdict) && words.every((word) => row.words.includes(word));
    row.element.hidden = !show;
    if (row.detail) row.detail.hidden = !show || !isOpen(row);
    count += show;
  }
  document.getElementById("shown").textContent = `${count} of ${rows.length} cases shown`;
}

for (const verdict of [...wanted]) {
  const button =
    add(document.getElementById("verdicts"), "button", {type: "button", "aria-pressed": "true", class: verdict});
  button.textContent = `${verdict} ${rows.filter((row) => row.verdict === verdict).length}`;
  button.addEventListener("click", () => {
    const on = !wanted.has(verdict);
    if (on)
      wanted.add(verdict);
    else
      wanted.delete(verdict);
    button.setAttribute("aria-pressed", String(on));
    applyFilter();
  });
}
input.addEventListener("input", applyFilter);
document.getElementById("filter").addEventListener("submit", (event) => event.preventDefault());

// --- the details of a case, made when it is first opened ---

const isOpen = (row) => row.button.getAttribute("aria-expanded") === "true";

function facts(parent, item) {
  const list = add(parent, "dl");
  const put = (name, value) => {
    if (value === null || value === undefined || value === "" || value === "-") return;
    add(list, "dt", {}, name);
    add(list, "dd", {}, String(value));
  };
  if (item.low && item.high)
    put("change", `${percent(item.ratio)}, interval ${percent(item.low)} to ${percent(item.high)}`);
  if (item.p !== null && item.ratio)
    put(
      "p",
      `${small(item.p)}, ${
        item.p_corrected === null ? "-" : small(item.p_corrected)} corrected for the number of cases`);
  for (const side of ["base", "head"]) {
    const s = item[side];
    if (!s) continue;
    const clock = s.clock_mhz ? `, at ${s.clock_mhz.toFixed(0)} MHz` : "";
    const spread = s.spread !== null ? `, ${data.counted[side]} differ by ${(100 * s.spread).toFixed(1)} %` : "";
    put(side, s.ns ? `${time(s.ns, 4)}${spread}, ${s.visits.length} ${data.counted[side]}${clock}` : s.message || s.state);
    if (s.ns && item.bytes) put(`${side} moves`, rate(item.bytes / s.ns * 1e9, "B/s"));
    if (s.ns && item.flops) put(`${side} does`, rate(item.flops / s.ns * 1e9, "FLOP/s"));
  }
  put("device", item.device === "-" ? "the calling thread" : item.device);
  put("mode", item.mode);
  put("dtype", item.dtype);
}

function fillDetail(row) {
  const item = data.rows[row.index], cell = row.detail.cells[0];
  cell.replaceChildren();
  const width = Math.max(260, Math.min(table.parentElement.clientWidth, 900) - 40);
  if (drawDistribution(cell, item, width)) {
    add(
      cell, "p", {class: "note"},
      "A dot is a sample, a line of dots a process, the box the middle half, the thick line the median.");
  }
  facts(cell, item);
}

function toggle(row, open) {
  row.button.setAttribute("aria-expanded", String(open));
  if (open && !row.detail) {
    row.detail = document.createElement("tr");
    row.detail.className = "detail";
    row.detail.id = `detail-${row.index}`;
    row.button.setAttribute("aria-controls", row.detail.id);
    add(row.detail, "td", {colspan: table.tHead.rows[0].cells.length});
    row.element.after(row.detail);
    fillDetail(row);
  }
  if (row.detail) row.detail.hidden = !open;
}

for (const row of rows) {
  const name = row.element.querySelector(".name");
  row.button = document.createElement("button");
  row.button.type = "button";
  row.button.className = "open";
  row.button.setAttribute("aria-expanded", "false");
  name.replaceWith(row.button);
  row.button.append(name);
  row.button.addEventListener("click", () => toggle(row, !isOpen(row)));
}

function openCase(index) {
  const row = rows.find((r) => r.index === index);
  toggle(row, true);
  row.element.scrollIntoView({block: "start"});
  row.button.focus();
}

// --- the plots, drawn anew when the width changes ---

// A choice of `options` where there is more than one; `draw` gets its place.
function choose(section, label, options, draw) {
  const place = section.querySelector(".pick");
  let chosen = 0;
  if (options.length > 1) {
    const select = add(add(place, "label", {}, label + " "), "select");
    options.forEach((option, i) => add(select, "option", {value: i}, option));
    select.addEventListener("change", () => draw(chosen = Number(select.value)));
  } else if (section.id === "history") {
    place.textContent = options[0];
  }
  return () => draw(chosen);
}

const redraws = [];

// Shows a section whose figure `draw` fills for a width and a choice.
function show(id, label, options, draw) {
  const section = document.getElementById(id), figure = section.querySelector("figure");
  section.hidden = false;
  redraws.push(choose(section, label, options, (chosen) => {
    figure.replaceChildren();
    draw(figure, Math.max(300, section.clientWidth), chosen);
  }));
}

function listChanges(history) {
  const place = document.querySelector("#history .changes");
  place.replaceChildren();
  add(
    place, "p", {class: "note"},
    "A dot is a run, the line through it how far its processes (of one imported file, its repetitions) differ, a band the median between two changes.");
  if (!history.changes.length) add(place, "p", {class: "note"}, "No change was found.");
  const list = add(place, "ul");
  for (const c of history.changes) {
    const p = c.p === null ? "" : ` (p ${small(c.p)})`;
    add(
      list, "li", {},
      `${percent(c.after / c.before)} at ${revisionOf(history.points[c.at])}: ${time(c.before, 4)} before, ${
        time(c.after, 4)} after${p}`);
  }
}

const devices = [...new Set(data.rows.filter((r) => r.bytes && r.flops && sideOf(r)).map((r) => r.device))];
if (devices.length)
  show("roofline", "Device", devices, (figure, width, i) => drawRoofline(figure, devices[i], width, names, openCase));
if (data.rows.some((r) => r.bytes && !r.flops && sideOf(r)))
  show("bandwidth", "", [""], (figure) => drawBandwidth(figure, names, 40));
const histories = data.histories.filter((h) => h.points.length);
if (histories.length) {
  const labels = histories.map(
    (h) =>
      histories.filter((other) => other.case === h.case).length > 1 ? `${h.case} [${h.mode} ${h.device}]` : h.case);
  show("history", "Case", labels, (figure, width, i) => {
    drawHistory(figure, histories[i], width);
    listChanges(histories[i]);
  });
}

let lastWidth = 0;
function redraw() {
  if (table.parentElement.clientWidth === lastWidth) return;
  lastWidth = table.parentElement.clientWidth;
  for (const again of redraws) again();
  for (const row of rows)
    if (row.detail) fillDetail(row);
}
document.getElementById("filter").hidden = false;
applyFilter();
redraw();
window.addEventListener("resize", redraw);
