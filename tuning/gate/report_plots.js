// SPDX-License-Identifier: Apache-2.0
// report_plots.js: what the page draws: distributions, roofline, bandwidth, history. Text from the data is set as text only.

const data = JSON.parse(document.getElementById("data").textContent);
const svgSpace = "http://www.w3.org/2000/svg";

// An element of `parent`: its attributes, and text.
function add(parent, name, attributes = {}, text) {
  const svg = parent instanceof SVGElement || name === "svg";
  const element = svg ? document.createElementNS(svgSpace, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return parent.appendChild(element);
}

function scaled(value, units, step, digits) {
  let unit = 0;
  while (unit < units.length - 1 && value >= step * 0.9995) {
    value /= step;
    unit++;
  }
  return value.toPrecision(Math.max(digits, Math.ceil(Math.log10(value + 1)))).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "") + " " + units[unit];
}
const time = (ns, digits = 3) => ns > 0 ? scaled(ns, ["ns", "us", "ms", "s"], 1000, digits) : "-";
const rate = (value, unit) => value > 0 ? scaled(value, ["", "k", "M", "G", "T", "P"].map((p) => p + unit), 1000, 3) : "-";
const percent = (ratio) => (ratio >= 1 ? "+" : "\u2212") + (100 * Math.abs(ratio - 1)).toFixed(1) + " %";

const small = (p) => p > 0 && p < 0.001 ? p.toExponential(0) : p.toPrecision(2);

// Round steps over [low, high], about `count`.
function steps(low, high, count) {
  const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high + step / 1e6; i++) found.push(i * step);
  return found;
}

function quantile(sorted, q) {
  const at = (sorted.length - 1) * q, below = Math.floor(at);
  return sorted[below] + (sorted[Math.min(below + 1, sorted.length - 1)] - sorted[below]) * (at - below);
}

// A mark that differs by shape as well as by color: base a ring, head by its verdict.
function mark(parent, kind, x, y, size = 4.5) {
  const color = `var(--${kind})`;
  if (kind === "base") return add(parent, "circle", { cx: x, cy: y, r: size * 0.85, fill: "var(--back)", stroke: color, "stroke-width": 1.6 });
  const up = `M${x} ${y - size * 1.2}L${x + size * 1.1} ${y + size * 0.8}H${x - size * 1.1}Z`;
  const down = `M${x} ${y + size * 1.2}L${x + size * 1.1} ${y - size * 0.8}H${x - size * 1.1}Z`;
  const shapes = { slower: up, faster: down, unsure: `M${x} ${y - size * 1.3}L${x + size * 1.3} ${y}L${x} ${y + size * 1.3}L${x - size * 1.3} ${y}Z` };
  if (shapes[kind]) return add(parent, "path", { d: shapes[kind], fill: color });
  return add(parent, "circle", { cx: x, cy: y, r: size, fill: color });
}

function legend(parent, entries) {
  const list = add(parent, "ul", { class: "legend" });
  for (const [kind, words] of entries) {
    const item = add(list, "li");
    mark(add(item, "svg", { width: 14, height: 14, "aria-hidden": "true" }), kind, 7, 7);
    item.append(words);
  }
}

// --- one case: the samples of both sides, the box of their quartiles, the median of each process ---

function lane(svg, visits, side, top, height, x) {
  const samples = visits.flat().filter((v) => v !== null).sort((a, b) => a - b);
  if (!samples.length) return;
  const [low, quarter, middle, most, high] = [0.02, 0.25, 0.5, 0.75, 0.98].map((q) => quantile(samples, q));
  const color = `var(--${side})`, center = top + height / 2;
  add(svg, "path", { d: `M${x(low)} ${center}H${x(high)}`, stroke: color });
  add(svg, "rect", { x: x(quarter), y: top + 3, width: Math.max(x(most) - x(quarter), 1), height: height - 6, fill: color, "fill-opacity": 0.16, stroke: color });
  visits.forEach((visit, i) => {
    const y = top + 6 + (height - 12) * (visits.length > 1 ? i / (visits.length - 1) : 0.5);
    for (const sample of visit) {
      if (sample === null) continue;
      const spot = side === "base" ? mark(svg, "base", x(sample), y, 2.6) : add(svg, "circle", { cx: x(sample), cy: y, r: 2.3, fill: color });
      spot.setAttribute("opacity", 0.75);
      add(spot, "title", {}, `${side}, process ${i + 1}: ${time(sample, 5)}`);
    }
  });
  add(svg, "path", { d: `M${x(middle)} ${top}v${height}`, stroke: color, "stroke-width": 3 });
}

function drawDistribution(parent, row, width) {
  const sides = ["base", "head"].filter((side) => row[side] && row[side].visits.some((v) => v.some((s) => s !== null)));
  if (!sides.length) return false;
  const all = sides.flatMap((side) => row[side].visits.flat()).filter((v) => v !== null).sort((a, b) => a - b);
  // Far samples would hide the rest: the axis ends a little beyond the box's reach, they stand at its edge.
  const spread = quantile(all, 0.75) - quantile(all, 0.25) || all[0] * 0.01;
  const low = Math.max(all[0], quantile(all, 0.25) - 4 * spread), high = Math.min(all[all.length - 1], quantile(all, 0.75) + 4 * spread);
  const left = 46, right = 26, height = 58, gap = 10, bottom = 10 + sides.length * (height + gap);
  const span = high - low || low * 0.01, from = low - span * 0.03, to = high + span * 0.03;
  const x = (v) => left + (Math.min(Math.max(v, from), to) - from) / (to - from) * (width - left - right);
  const words = sides.map((side) => `${side} ${time(row[side].ns)}`).join(", ");
  const svg = add(parent, "svg", { width, height: bottom + 24, role: "img", "aria-label": `Times of all samples: ${words}` });
  for (const value of steps(from, to, Math.max(2, Math.floor(width / 130)))) {
    add(svg, "path", { d: `M${x(value)} 4V${bottom}`, class: "grid" });
    add(svg, "text", { x: x(value), y: bottom + 16, "text-anchor": "middle", class: "quiet" }, time(value, 4));
  }
  sides.forEach((side, i) => {
    const top = 8 + i * (height + gap);
    add(svg, "text", { x: 0, y: top + height / 2 + 4 }, side);
    lane(svg, row[side].visits, side, top, height, x);
  });
  return true;
}

// --- roofline ---

const sideOf = (row) => row.head && row.head.ns ? row.head : row.base && row.base.ns ? row.base : null;

// The logarithms that enclose all values, with some room.
function enclose(values) {
  return [Math.log10(Math.min(...values)) - 0.25, Math.log10(Math.max(...values)) + 0.25];
}

// Round values between two logarithms: 1, 2 and 5 of each power, or the powers alone where they are many.
function rounds([low, high], room) {
  const found = [];
  for (let power = Math.floor(low); power <= high; power++) {
    for (const digit of (high - low) * 3 > room ? [1] : [1, 2, 5]) found.push(digit * 10 ** power);
  }
  return found.filter((v) => Math.log10(v) >= low && Math.log10(v) <= high);
}

function roofsOf(device) {
  const found = data.roofs.filter((roof) => roof.device === device);
  return { bytes: Math.max(0, ...found.map((roof) => roof.bytes_s || 0)), flops: found.filter((roof) => roof.flops_s > 0) };
}

function axes(svg, box, x, y, xs, ys) {
  for (const value of rounds(xs, (box.right - box.left) / 60)) {
    add(svg, "path", { d: `M${x(value)} ${box.top}V${box.bottom}`, class: "grid" });
    add(svg, "text", { x: x(value), y: box.bottom + 16, "text-anchor": "middle", class: "quiet" }, String(Number(value.toPrecision(1))));
  }
  for (const value of rounds(ys, 12)) {
    add(svg, "path", { d: `M${box.left} ${y(value)}H${box.right}`, class: "grid" });
    add(svg, "text", { x: box.left - 6, y: y(value) + 4, "text-anchor": "end", class: "quiet" }, rate(value, ""));
  }
  add(svg, "path", { d: `M${box.left} ${box.top}V${box.bottom}H${box.right}`, class: "axis", fill: "none" });
  add(svg, "text", { x: (box.left + box.right) / 2, y: box.bottom + 34, "text-anchor": "middle" }, "FLOP per byte");
  add(svg, "text", { x: 0, y: 10 }, "FLOP/s");
}

function drawRoofs(svg, roofs, box, x, y, xs) {
  const most = Math.max(...roofs.flops.map((roof) => roof.flops_s), 0);
  const line = (d) => add(svg, "path", { d, stroke: "var(--roof)", "stroke-width": 1.8, fill: "none" });
  const right = 10 ** xs[1];
  if (roofs.bytes) {
    const end = most ? Math.min(most / roofs.bytes, right) : right;
    line(`M${x(10 ** xs[0])} ${y(10 ** xs[0] * roofs.bytes)}L${x(end)} ${y(end * roofs.bytes)}`);
    const at = Math.sqrt(10 ** xs[0] * end), slope = Math.atan2(y(end * roofs.bytes) - y(at * roofs.bytes), x(end) - x(at)) * 180 / Math.PI;
    add(svg, "text", { transform: `translate(${x(at)} ${y(at * roofs.bytes) - 7}) rotate(${slope})`, "text-anchor": "middle" }, rate(roofs.bytes, "B/s"));
  }
  for (const roof of roofs.flops) {
    const start = Math.max(roofs.bytes ? roof.flops_s / roofs.bytes : 0, 10 ** xs[0]);
    line(`M${x(start)} ${y(roof.flops_s)}H${box.right}`);
    add(svg, "text", { x: box.right, y: y(roof.flops_s) - 5, "text-anchor": "end" }, `${roof.dtype} ${rate(roof.flops_s, "FLOP/s")}`);
  }
}

function drawRoofline(figure, device, width, names, open) {
  const rows = data.rows.map((row, i) => ({ row, i })).filter(({ row }) => row.device === device && row.bytes && row.flops && sideOf(row));
  const roofs = roofsOf(device), box = { left: 52, top: 22, right: width - 12, bottom: Math.min(430, width * 0.8) };
  const xs = enclose(rows.map(({ row }) => row.flops / row.bytes));
  const ys = enclose(rows.flatMap(({ row }) => [row.flops / sideOf(row).ns * 1e9]).concat(roofs.flops.map((roof) => roof.flops_s)));
  const x = (v) => box.left + (Math.log10(v) - xs[0]) / (xs[1] - xs[0]) * (box.right - box.left);
  const y = (v) => box.bottom - (Math.log10(v) - ys[0]) / (ys[1] - ys[0]) * (box.bottom - box.top);
  const svg = add(figure, "svg", { width, height: box.bottom + 40, role: "img", "aria-label": `Roofline of ${device}: ${rows.length} cases by FLOP per byte and FLOP per second` });
  axes(svg, box, x, y, xs, ys);
  const cut = add(add(svg, "defs"), "clipPath", { id: "plot" });
  add(cut, "rect", { x: box.left, y: 0, width: box.right - box.left + 2, height: box.bottom });
  drawRoofs(add(svg, "g", { "clip-path": "url(#plot)" }), roofs, box, x, y, xs);
  for (const { row, i } of rows) {
    const at = x(row.flops / row.bytes), of = (side) => y(row.flops / row[side].ns * 1e9);
    const group = add(svg, "g", { style: "cursor: pointer" });
    if (row.base && row.base.ns && row.head && row.head.ns) {
      add(group, "path", { d: `M${at} ${of("base")}V${of("head")}`, stroke: `var(--${row.verdict})`, "stroke-width": 1.5 });
      if (row.verdict !== "same") mark(group, "base", at, of("base"), 4);
    }
    mark(group, row.head && row.head.ns ? row.verdict : "base", at, y(row.flops / sideOf(row).ns * 1e9));
    add(group, "title", {}, `${names[i]}: ${row.verdict}, ${rate(row.flops / sideOf(row).ns * 1e9, "FLOP/s")}, ${rate(row.bytes / sideOf(row).ns * 1e9, "B/s")}`);
    group.addEventListener("click", () => open(i));
  }
  const kinds = [...new Set(rows.filter(({ row }) => row.head && row.head.ns).map(({ row }) => row.verdict))];
  legend(figure, kinds.map((kind) => [kind, kind]).concat([["base", "base, where it changed"]]));
}

// --- cases that only move data ---

function drawBandwidth(figure, names, most) {
  const rows = data.rows.map((row, i) => ({ row, i })).filter(({ row }) => row.bytes && !row.flops && sideOf(row));
  const speed = (row) => row.bytes / sideOf(row).ns * 1e9, roof = (row) => roofsOf(row.device).bytes;
  const fastest = Math.max(...rows.map(({ row }) => speed(row)));
  const part = (row, value) => Math.min(value / (roof(row) || fastest), 1) * 100 + "%";
  rows.sort((a, b) => speed(b.row) / (roof(b.row) || fastest) - speed(a.row) / (roof(a.row) || fastest));
  const list = add(figure, "ul", { class: "bars" });
  for (const { row, i } of rows.slice(0, most)) {
    const item = add(list, "li"), share = roof(row) ? `, ${(100 * speed(row) / roof(row)).toFixed(0)} % of ${rate(roof(row), "B/s")}` : "";
    add(item, "span", { class: "label" }, names[i]);
    const track = add(item, "span", { class: "track", "aria-hidden": "true" });
    add(track, "span", { class: "bar" }).style.width = part(row, speed(row));
    if (row.base && row.base.ns && row.head && row.head.ns) add(track, "span", { class: "was" }).style.left = part(row, row.bytes / row.base.ns * 1e9);
    add(item, "span", { class: "value" }, rate(speed(row), "B/s") + share);
  }
  const left = rows.length - most;
  add(figure, "p", { class: "note" }, "The dashed line is base." + (left > 0 ? ` The ${left} slower ones are in the table.` : ""));
}

// --- history ---

const revisionOf = (point) => point.label || point.revision.slice(0, 10) || `run ${point.run}`;

function drawHistory(figure, history, width) {
  const points = history.points, values = points.map((p) => p.ns).filter((v) => v !== null);
  if (!values.length) return;
  const reach = points.flatMap((p) => p.ns ? [p.ns * (1 - (p.spread || 0)), p.ns * (1 + (p.spread || 0))] : []);
  const low = Math.min(...reach), high = Math.max(...reach), edge = (high - low || low * 0.02) * 0.08;
  const box = { left: 70, top: 24, right: width - 14, bottom: 250 };
  const x = (i) => box.left + 8 + (points.length > 1 ? i / (points.length - 1) : 0.5) * (box.right - box.left - 16);
  const y = (v) => box.bottom - (v - low + edge) / (high - low + 2 * edge) * (box.bottom - box.top);
  const told = history.changes.map((c) => `${percent(c.after / c.before)} at ${revisionOf(points[c.at])}`).join(", ");
  const svg = add(figure, "svg", { width, height: box.bottom + 30, role: "img", "aria-label": `Times of ${points.length} runs; changes: ${told || "none"}` });
  for (const value of steps(low - edge, high + edge, 5)) {
    add(svg, "path", { d: `M${box.left} ${y(value)}H${box.right}`, class: "grid" });
    add(svg, "text", { x: box.left - 6, y: y(value) + 4, "text-anchor": "end", class: "quiet" }, time(value, 4));
  }
  const cuts = [0, ...history.changes.map((c) => c.at), points.length];
  cuts.slice(0, -1).forEach((from, k) => {
    const part = points.slice(from, cuts[k + 1]).map((p) => p.ns).filter((v) => v !== null).sort((a, b) => a - b);
    if (part.length) add(svg, "path", { d: `M${x(from) - 4} ${y(quantile(part, 0.5))}H${x(cuts[k + 1] - 1) + 4}`, stroke: "var(--head)", "stroke-width": 6, opacity: 0.35 });
  });
  points.forEach((point, i) => {
    if (point.ns === null) return;
    const group = add(svg, "g");
    if (point.spread > 0) add(group, "path", { d: `M${x(i)} ${y(point.ns * (1 - point.spread))}V${y(point.ns * (1 + point.spread))}`, stroke: "var(--head)", opacity: 0.6 });
    add(group, "circle", { cx: x(i), cy: y(point.ns), r: 3.5, fill: "var(--head)" });
    add(group, "title", {}, `${revisionOf(point)}, ${new Date(point.started * 1000).toISOString().slice(0, 10)}: ${time(point.ns, 4)}`);
  });
  for (const change of history.changes) {
    const kind = change.after > change.before ? "slower" : "faster", at = (x(change.at) + x(Math.max(change.at - 1, 0))) / 2;
    add(svg, "path", { d: `M${at} ${box.top}V${box.bottom}`, stroke: `var(--${kind})`, "stroke-width": 1.6, "stroke-dasharray": "5 4" });
    mark(svg, kind, at, box.top - 2);
    const end = at > width / 2;
    add(svg, "text", { x: at + (end ? -10 : 10), y: box.top + 2, "text-anchor": end ? "end" : "start" }, `${percent(change.after / change.before)} ${kind}`);
  }
  add(svg, "text", { x: box.left, y: box.bottom + 18, class: "quiet" }, revisionOf(points[0]));
  if (points.length > 1) add(svg, "text", { x: box.right, y: box.bottom + 18, "text-anchor": "end", class: "quiet" }, revisionOf(points[points.length - 1]));
}
