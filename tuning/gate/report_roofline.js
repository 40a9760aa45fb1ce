// SPDX-License-Identifier: Apache-2.0
// report_roofline.js: what the page draws of all cases: how near each is to what its device can do.

const sideOf = (row) => row.head && row.head.ns ? row.head : row.base && row.base.ns ? row.base : null;

// The logarithms that enclose all values, with some room.
function enclose(values) { return [Math.log10(Math.min(...values)) - 0.25, Math.log10(Math.max(...values)) + 0.25]; }

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
  return {
    bytes: Math.max(0, ...found.map((roof) => roof.bytes_s || 0)),
    flops: found.filter((roof) => roof.flops_s > 0)
  };
}

function axes(svg, box, x, y, xs, ys) {
  for (const value of rounds(xs, (box.right - box.left) / 60)) {
    add(svg, "path", {d: `M${x(value)} ${box.top}V${box.bottom}`, class: "grid"});
    add(
      svg, "text", {x: x(value), y: box.bottom + 16, "text-anchor": "middle", class: "quiet"},
      String(Number(value.toPrecision(1))));
  }
  for (const value of rounds(ys, 12)) {
    add(svg, "path", {d: `M${box.left} ${y(value)}H${box.right}`, class: "grid"});
    add(svg, "text", {x: box.left - 6, y: y(value) + 4, "text-anchor": "end", class: "quiet"}, rate(value, ""));
  }
  add(svg, "path", {d: `M${box.left} ${box.top}V${box.bottom}H${box.right}`, class: "axis", fill: "none"});
  add(svg, "text", {x: (box.left + box.right) / 2, y: box.bottom + 34, "text-anchor": "middle"}, "FLOP per byte");
  add(svg, "text", {x: 0, y: 10}, "FLOP/s");
}

function drawRoofs(svg, roofs, box, x, y, xs) {
  const most = Math.max(...roofs.flops.map((roof) => roof.flops_s), 0);
  const line = (d) => add(svg, "path", {d, stroke: "var(--roof)", "stroke-width": 1.8, fill: "none"});
  const right = 10 ** xs[1];
  if (roofs.bytes) {
    const end = most ? Math.min(most / roofs.bytes, right) : right;
    line(`M${x(10 ** xs[0])} ${y(10 ** xs[0] * roofs.bytes)}L${x(end)} ${y(end * roofs.bytes)}`);
    const at = Math.sqrt(10 ** xs[0] * end),
          slope = Math.atan2(y(end * roofs.bytes) - y(at * roofs.bytes), x(end) - x(at)) * 180 / Math.PI;
    add(
      svg, "text",
      {transform: `translate(${x(at)} ${y(at * roofs.bytes) - 7}) rotate(${slope})`, "text-anchor": "middle"},
      rate(roofs.bytes, "B/s"));
  }
  for (const roof of roofs.flops) {
    const start = Math.max(roofs.bytes ? roof.flops_s / roofs.bytes : 0, 10 ** xs[0]);
    line(`M${x(start)} ${y(roof.flops_s)}H${box.right}`);
  }
}

// The roofs' names, at the right of the plot; those that lie close stand below each other.
function labelRoofs(svg, roofs, box, y, unit) {
  let last = -Infinity;
  for (const roof of [...roofs.flops].sort((a, b) => b.flops_s - a.flops_s)) {
    last = Math.max(y(roof.flops_s) + 4, last + 14);
    add(svg, "text", {x: box.right + 6, y: last}, `${roof.dtype} ${rate(roof.flops_s, unit)}`);
  }
}

function drawRoofline(figure, device, width, names, open) {
  const rows = data.rows.map((row, i) => ({row, i}))
                 .filter(({row}) => row.device === device && row.bytes && row.flops && sideOf(row));
  const narrow = width < 600, roofs = roofsOf(device), room = roofs.flops.length ? narrow ? 80 : 130 : 12;
  const box = {left: 52, top: 22, right: width - room, bottom: Math.min(430, width * 0.8)};
  const xs = enclose(rows.map(({row}) => row.flops / row.bytes));
  const ys = enclose(
    rows.flatMap(({row}) => [row.flops / sideOf(row).ns * 1e9]).concat(roofs.flops.map((roof) => roof.flops_s)));
  const x = (v) => box.left + (Math.log10(v) - xs[0]) / (xs[1] - xs[0]) * (box.right - box.left);
  const y = (v) => box.bottom - (Math.log10(v) - ys[0]) / (ys[1] - ys[0]) * (box.bottom - box.top);
  const svg = add(figure, "svg", {
    width,
    height: box.bottom + 40,
    role: "img",
    "aria-label": `Roofline of ${device}: ${rows.length} cases by FLOP per byte and FLOP per second`
  });
  axes(svg, box, x, y, xs, ys);
  const cut = add(add(svg, "defs"), "clipPath", {id: "plot"});
  add(cut, "rect", {x: box.left, y: 0, width: box.right - box.left + 2, height: box.bottom});
  drawRoofs(add(svg, "g", {"clip-path": "url(#plot)"}), roofs, box, x, y, xs);
  labelRoofs(svg, roofs, box, y, narrow ? "" : "FLOP/s");
  for (const {row, i} of rows) {
    const at = x(row.flops / row.bytes), of = (side) => y(row.flops / row[side].ns * 1e9);
    const group = add(svg, "g", {style: "cursor: pointer"});
    if (row.base && row.base.ns && row.head && row.head.ns) {
      add(
        group, "path", {d: `M${at} ${of("base")}V${of("head")}`, stroke: `var(--${row.verdict})`, "stroke-width": 1.5});
      if (row.verdict !== "same") mark(group, "base", at, of("base"), 4);
    }
    mark(group, row.head && row.head.ns ? row.verdict : "base", at, y(row.flops / sideOf(row).ns * 1e9));
    add(
      group, "title", {},
      `${names[i]}: ${row.verdict}, ${rate(row.flops / sideOf(row).ns * 1e9, "FLOP/s")}, ${
        rate(row.bytes / sideOf(row).ns * 1e9, "B/s")}`);
    group.addEventListener("click", () => open(i));
  }
  const kinds = [...new Set(rows.filter(({row}) => row.head && row.head.ns).map(({row}) => row.verdict))];
  legend(figure, kinds.map((kind) => [kind, kind]).concat([["base", "base, where it changed"]]));
}

// --- cases that only move data ---

function drawBandwidth(figure, names, most) {
  const rows = data.rows.map((row, i) => ({row, i})).filter(({row}) => row.bytes && !row.flops && sideOf(row));
  const speed = (row) => row.bytes / sideOf(row).ns * 1e9, roof = (row) => roofsOf(row.device).bytes;
  const fastest = Math.max(...rows.map(({row}) => speed(row)));
  const part = (row, value) => Math.min(value / (roof(row) || fastest), 1) * 100 + "%";
  rows.sort((a, b) => speed(b.row) / (roof(b.row) || fastest) - speed(a.row) / (roof(a.row) || fastest));
  const list = add(figure, "ul", {class: "bars"});
  for (const {row, i} of rows.slice(0, most)) {
    const item = add(list, "li"),
          share = roof(row) ? `, ${(100 * speed(row) / roof(row)).toFixed(0)} % of ${rate(roof(row), "B/s")}` : "";
    add(item, "span", {class: "label"}, names[i]);
    const track = add(item, "span", {class: "track", "aria-hidden": "true"});
    add(track, "span", {class: "bar"}).style.width = part(row, speed(row));
    if (row.base && row.base.ns && row.head && row.head.ns)
      add(track, "span", {class: "was"}).style.left = part(row, row.bytes / row.base.ns * 1e9);
    add(item, "span", {class: "value"}, rate(speed(row), "B/s") + share);
  }
  const left = rows.length - most;
  add(
    figure, "p", {class: "note"},
    "The dashed line is base." + (left > 0 ? ` The ${left} slower ones are in the table.` : ""));
}
