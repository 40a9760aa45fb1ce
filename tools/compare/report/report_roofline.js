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
    add(svg, "text", {x: box.left - 6, y: y(value) + 4, "text-anchor": "end", class: "quiet"}, rate(value, "FLOP/s"));
  }
  add(svg, "path", {d: `M${box.left} ${box.top}V${box.bottom}H${box.right}`, class: "axis", fill: "none"});
  add(svg, "text", {x: (box.left + box.right) / 2, y: box.bottom + 34, "text-anchor": "middle"}, "FLOP per byte");
}

// What names keep off: `taken` gets boxes along the lines, and where the slope's own name stands.
function drawRoofs(svg, roofs, box, x, y, xs, taken, short) {
  const most = Math.max(...roofs.flops.map((roof) => roof.flops_s), 0);
  const line = (d) => add(svg, "path", {d, stroke: "var(--roof)", "stroke-width": 1.8, fill: "none"});
  const right = 10 ** xs[1];
  if (roofs.bytes) {
    const end = most ? Math.min(most / roofs.bytes, right) : right;
    line(`M${x(10 ** xs[0])} ${y(10 ** xs[0] * roofs.bytes)}L${x(end)} ${y(end * roofs.bytes)}`);
    const at = Math.sqrt(10 ** xs[0] * end),
          slope = Math.atan2(y(end * roofs.bytes) - y(at * roofs.bytes), x(end) - x(at)) * 180 / Math.PI;
    add(svg, "text", {
      transform: `translate(${x(at)} ${y(at * roofs.bytes) - 7}) rotate(${slope})`,
      "text-anchor": "middle",
      class: "roof"
    },
        `${short ? "copy" : "memory, by a copy:"} ${rate(roofs.bytes, "B/s")}`);
    for (let px = x(10 ** xs[0]); px < x(end); px += 4) {
      const py = y(at * roofs.bytes) + (px - x(at)) * Math.tan(slope * Math.PI / 180),
            named = Math.abs(px - x(at)) < (short ? 50 : 105);
      taken.push({x: px - 2, y: py - (named ? 20 : 3), width: 4, height: named ? 23 : 6});
    }
  }
  for (const roof of roofs.flops) {
    const start = Math.max(roofs.bytes ? roof.flops_s / roofs.bytes : 0, 10 ** xs[0]);
    line(`M${x(start)} ${y(roof.flops_s)}H${box.right}`);
    taken.push({x: x(start), y: y(roof.flops_s) - 1, width: box.right - x(start), height: 2});
  }
}

// A text at the first of `places` ([x, y], its left end on the line) that keeps off everything that is taken and off
// the points, but for its own; then its place is taken, too. Null: it has none.
function putText(svg, words, kind, places, box, taken, points, own) {
  const meets = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
  const text = add(svg, "text", {class: kind}, words), width = text.getComputedTextLength() || 6.5 * words.length;
  const spots = points.filter((p) => p !== own)
                    .map((p) => ({x: p.at - 6, y: p.top - 6, width: 12, height: p.bottom - p.top + 12}));
  for (const [left, y] of places(width)) {
    const at = {x: left, y: y - 11, width, height: 14};
    if (at.x < box.left + 2 || at.x + width > box.right || at.y < 0 || at.y + 14 > box.bottom) continue;
    if ([...taken, ...spots].some((other) => meets(at, other))) continue;
    taken.push(at);
    text.setAttribute("x", left);
    text.setAttribute("y", y);
    return text;
  }
  text.remove();
  return null;
}

// The roofs' names, on their lines: at the right end, else nearer to the slope, else above all that is there.
function nameRoofs(svg, roofs, box, x, y, xs, taken, points, short) {
  for (const roof of [...roofs.flops].sort((a, b) => b.flops_s - a.flops_s)) {
    const start = x(Math.max(roofs.bytes ? roof.flops_s / roofs.bytes : 0, 10 ** xs[0])), line = y(roof.flops_s);
    const words = `${roof.dtype}${short ? "" : ", by a product:"} ${rate(roof.flops_s, "FLOP/s")}`;
    const places = (width) => [0, 0.25, 0.5, 0.75, 1].flatMap((part) => {
      const left = box.right - 4 - width - part * Math.max(box.right - start - width - 12, 0);
      return [[left, line - 5], [left, line + 14]];
    });
    if (putText(svg, words, "roof", places, box, taken, points)) continue;
    const text = add(svg, "text", {x: box.right - 4, y: line - 5, "text-anchor": "end", class: "roof"}, words);
    const width = text.getComputedTextLength() || 6.5 * words.length;
    taken.push({x: box.right - 4 - width, y: line - 16, width, height: 14});
  }
}

// The names of points, where there is room: what changed first. How many have none.
function namePoints(svg, points, box, taken) {
  const order = ["slower", "failed", "repaired", "faster", "unsure", "same"];
  const sorted = [...points].sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
  return sorted.filter((p) => {
    const words = p.name.length > 28 ? p.name.slice(0, 27) + "\u2026" : p.name, middle = (p.top + p.bottom) / 2;
    const places = (width) => [[p.at + 9, middle + 4], [p.at - 9 - width, middle + 4], [p.at - width / 2, p.top - 9],
                               [p.at - width / 2, p.bottom + 18], [p.at + 7, p.top - 7], [p.at + 7, p.bottom + 15]];
    return !putText(svg, words, "point", places, box, taken, points, p);
  }).length;
}

function drawRoofline(figure, device, width, names, open) {
  const rows = data.rows.map((row, i) => ({row, i}))
                 .filter(({row}) => row.device === device && row.bytes && row.flops && sideOf(row));
  const roofs = roofsOf(device), short = width < 600;
  const box = {left: 92, top: 16, right: width - 12, bottom: Math.min(430, width * 0.8)};
  const xs = enclose(rows.map(({row}) => row.flops / row.bytes));
  const speeds = (row) => ["base", "head"]
                              .filter((side) => row[side] && row[side].ns)
                              .map((side) => row.flops / row[side].ns * 1e9);
  const ys = enclose(rows.flatMap(({row}) => speeds(row)).concat(roofs.flops.map((roof) => roof.flops_s)));
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
  const points = [], taken = [];
  drawRoofs(add(svg, "g", {"clip-path": "url(#plot)"}), roofs, box, x, y, xs, taken, short);
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
    const ends = speeds(row).map((speed) => y(speed));
    points.push({name: names[i], verdict: row.verdict, at, top: Math.min(...ends), bottom: Math.max(...ends)});
  }
  nameRoofs(svg, roofs, box, x, y, xs, taken, points, short);
  const nameless = namePoints(svg, points, box, taken);
  const kinds = [...new Set(rows.filter(({row}) => row.head && row.head.ns).map(({row}) => row.verdict))];
  legend(figure, kinds.map((kind) => [kind, kind]).concat([["base", "base, where it is not the same"]]));
  const where = device === "-" ? "the calling thread" : device, notes = [];
  notes.push(
      roofs.bytes || roofs.flops.length ?
          `Lines: the best that ${
              where} did in this run, with a copy that no cache holds and with a large matrix product of each dtype.` :
          `This run measured no roof of ${where}: attune bench does that for workloads, suites and databases.`);
  if (nameless)
    notes.push(`${nameless} point${nameless === 1 ? " has" : "s have"} no room for a name; pointing at one tells it.`);
  add(figure, "p", {class: "note"}, notes.join(" "));
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
  add(figure, "p", {class: "note"},
      "The dashed line is base. A track ends at the bandwidth of a copy in this run, or at the fastest case where none " +
      "was measured; a bar that is " +
          "faster ends there, too." + (left > 0 ? ` The ${left} slower ones are in the table.` : ""));
}
