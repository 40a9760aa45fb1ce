// SPDX-License-Identifier: Apache-2.0
// report_plots.js: what the page draws of one case: the samples of both sides, its history; and what all plots use.
// Text from the data is set as text only. report_roofline.js draws all cases.

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
  return value.toPrecision(Math.max(digits, Math.ceil(Math.log10(value + 1))))
           .replace(/(\.\d*?)0+$/, "$1")
           .replace(/\.$/, "") +
    " " + units[unit];
}
const time = (ns, digits = 3) => ns > 0 ? scaled(ns, ["ns", "us", "ms", "s"], 1000, digits) : "-";
const rate = (value, unit) =>
  value > 0 ? scaled(value, ["", "k", "M", "G", "T", "P"].map((p) => p + unit), 1000, 3) : "-";
const percent = (ratio) => ratio >= 100 || ratio <= 0.01 ?
  (ratio >= 100 && ratio < 1e7 ? ratio.toFixed(0) : String(Number(ratio.toPrecision(3)))) + "x" :
  (ratio >= 1 ? "+" : "\u2212") + (100 * Math.abs(ratio - 1)).toFixed(1) + " %";

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
  if (kind === "base")
    return add(
      parent, "circle", {cx: x, cy: y, r: size * 0.85, fill: "var(--back)", stroke: color, "stroke-width": 1.6});
  const up = `M${x} ${y - size * 1.2}L${x + size * 1.1} ${y + size * 0.8}H${x - size * 1.1}Z`;
  const down = `M${x} ${y + size * 1.2}L${x + size * 1.1} ${y - size * 0.8}H${x - size * 1.1}Z`;
  const shapes = {
    slower: up,
    faster: down,
    unsure: `M${x} ${y - size * 1.3}L${x + size * 1.3} ${y}L${x} ${y + size * 1.3}L${x - size * 1.3} ${y}Z`
  };
  if (shapes[kind]) return add(parent, "path", {d: shapes[kind], fill: color});
  return add(parent, "circle", {cx: x, cy: y, r: size, fill: color});
}

function legend(parent, entries) {
  const list = add(parent, "ul", {class: "legend"});
  for (const [kind, words] of entries) {
    const item = add(list, "li");
    mark(add(item, "svg", {width: 14, height: 14, "aria-hidden": "true"}), kind, 7, 7);
    item.append(words);
  }
}

// --- one case: the samples of both sides, the box of their quartiles, the median of each process ---

function lane(svg, visits, side, top, height, x, ends) {
  const samples = visits.flat().filter((v) => v !== null).sort((a, b) => a - b);
  if (!samples.length) return;
  const [low, quarter, middle, most, high] = [0.02, 0.25, 0.5, 0.75, 0.98].map((q) => quantile(samples, q));
  const color = `var(--${side})`, center = top + height / 2;
  add(svg, "path", {d: `M${x(low)} ${center}H${x(high)}`, stroke: color});
  add(svg, "rect", {
    x: x(quarter),
    y: top + 3,
    width: Math.max(x(most) - x(quarter), 1),
    height: height - 6,
    fill: color,
    "fill-opacity": 0.16,
    stroke: color
  });
  visits.forEach((visit, i) => {
    const y = top + 6 + (height - 12) * (visits.length > 1 ? i / (visits.length - 1) : 0.5);
    for (const sample of visit) {
      if (sample === null) continue;
      const out = sample > ends[1] ? 1 : sample < ends[0] ? -1 : 0;
      const spot = out ? add(svg, "path", {d: `M${x(sample) + 4 * out} ${y}l${- 7 * out} 3.5v-7z`, fill: color}) :
          side === "base" ? mark(svg, "base", x(sample), y, 2.6) :
                            add(svg, "circle", {cx: x(sample), cy: y, r: 2.3, fill: color});
      spot.setAttribute("opacity", 0.75);
      add(spot, "title", {}, `${side}, process ${i + 1}: ${time(sample, 5)}`);
    }
  });
  add(svg, "path", {d: `M${x(middle)} ${top}v${height}`, stroke: color, "stroke-width": 3});
}

function drawDistribution(parent, row, width) {
  const sides = ["base", "head"].filter((side) => row[side] && row[side].visits.some((v) => v.some((s) => s !== null)));
  if (!sides.length) return false;
  const all = sides.flatMap((side) => row[side].visits.flat()).filter((v) => v !== null).sort((a, b) => a - b);
  // Far samples would hide the rest: the axis ends a little beyond the box's reach, they stand at its edge.
  const spread = quantile(all, 0.75) - quantile(all, 0.25) || all[0] * 0.01;
  const low = Math.max(all[0], quantile(all, 0.25) - 4 * spread),
        high = Math.min(all[all.length - 1], quantile(all, 0.75) + 4 * spread);
  const left = 46, right = 26, height = 58, gap = 10, bottom = 10 + sides.length * (height + gap);
  const span = high - low || low * 0.01, from = low - span * 0.03, to = high + span * 0.03;
  const x = (v) => left + (Math.min(Math.max(v, from), to) - from) / (to - from) * (width - left - right);
  const words = sides.map((side) => `${side} ${time(row[side].ns)}`).join(", ");
  const svg =
    add(parent, "svg", {width, height: bottom + 24, role: "img", "aria-label": `Times of all samples: ${words}`});
  for (const value of steps(from, to, Math.max(2, Math.floor(width / 130)))) {
    add(svg, "path", {d: `M${x(value)} 4V${bottom}`, class: "grid"});
    add(svg, "text", {x: x(value), y: bottom + 16, "text-anchor": "middle", class: "quiet"}, time(value, 4));
  }
  sides.forEach((side, i) => {
    const top = 8 + i * (height + gap);
    add(svg, "text", {x: 0, y: top + height / 2 + 4}, side);
    lane(svg, row[side].visits, side, top, height, x, [from, to]);
  });
  const beyond = all.filter((v) => v < from || v > to);
  if (beyond.length)
    add(
      parent, "p", {class: "note"},
      `${beyond.length} of ${all.length} samples ${beyond.length === 1 ? "lies" : "lie"} beyond the axis, as far as ${
        time(beyond[beyond.length - 1], 4)}; an arrow at its end stands for each.`);
  return true;
}

// --- history ---

const revisionOf = (point) => point.label || point.revision.slice(0, 10) || `run ${point.run}`;

function drawHistory(figure, history, width) {
  const points = history.points, values = points.map((p) => p.ns).filter((v) => v !== null);
  if (!values.length) return;
  const reach = points.flatMap((p) => p.ns ? [p.ns * (1 - (p.spread || 0)), p.ns * (1 + (p.spread || 0))] : []);
  const low = Math.min(...reach), high = Math.max(...reach), edge = (high - low || low * 0.02) * 0.08;
  const box = {left: 70, top: 24, right: width - 14, bottom: 250};
  const x = (i) => box.left + 8 + (points.length > 1 ? i / (points.length - 1) : 0.5) * (box.right - box.left - 16);
  const y = (v) => box.bottom - (v - low + edge) / (high - low + 2 * edge) * (box.bottom - box.top);
  const told = history.changes.map((c) => `${percent(c.after / c.before)} at ${revisionOf(points[c.at])}`).join(", ");
  const svg = add(figure, "svg", {
    width,
    height: box.bottom + 30,
    role: "img",
    "aria-label": `Times of ${points.length} runs; changes: ${told || "none"}`
  });
  for (const value of steps(low - edge, high + edge, 5)) {
    add(svg, "path", {d: `M${box.left} ${y(value)}H${box.right}`, class: "grid"});
    add(svg, "text", {x: box.left - 6, y: y(value) + 4, "text-anchor": "end", class: "quiet"}, time(value, 4));
  }
  const cuts = [0, ...history.changes.map((c) => c.at), points.length];
  cuts.slice(0, -1).forEach((from, k) => {
    const part = points.slice(from, cuts[k + 1]).map((p) => p.ns).filter((v) => v !== null).sort((a, b) => a - b);
    if (part.length)
      add(svg, "path", {
        d: `M${x(from) - 4} ${y(quantile(part, 0.5))}H${x(cuts[k + 1] - 1) + 4}`,
        stroke: "var(--head)",
        "stroke-width": 6,
        opacity: 0.35
      });
  });
  points.forEach((point, i) => {
    if (point.ns === null) return;
    const group = add(svg, "g");
    if (point.spread > 0)
      add(group, "path", {
        d: `M${x(i)} ${y(point.ns * (1 - point.spread))}V${y(point.ns * (1 + point.spread))}`,
        stroke: "var(--head)",
        opacity: 0.6
      });
    add(group, "circle", {cx: x(i), cy: y(point.ns), r: 3.5, fill: "var(--head)"});
    add(
      group, "title", {},
      `${revisionOf(point)}, ${new Date(point.started * 1000).toISOString().slice(0, 10)}: ${time(point.ns, 4)}`);
  });
  for (const change of history.changes) {
    const kind = change.after > change.before ? "slower" : "faster",
          at = (x(change.at) + x(Math.max(change.at - 1, 0))) / 2;
    add(
      svg, "path",
      {d: `M${at} ${box.top}V${box.bottom}`, stroke: `var(--${kind})`, "stroke-width": 1.6, "stroke-dasharray": "5 4"});
    mark(svg, kind, at, box.top - 2);
    const end = at > width / 2;
    add(
      svg, "text", {x: at + (end ? -10 : 10), y: box.top + 2, "text-anchor": end ? "end" : "start"},
      `${percent(change.after / change.before)} ${kind}`);
  }
  add(svg, "text", {x: box.left, y: box.bottom + 18, class: "quiet"}, revisionOf(points[0]));
  if (points.length > 1)
    add(
      svg, "text", {x: box.right, y: box.bottom + 18, "text-anchor": "end", class: "quiet"},
      revisionOf(points[points.length - 1]));
}
