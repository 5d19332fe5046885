"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const find = id => document.getElementById(id);
const color = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const known = v => v !== null && v !== undefined;
const short = v => !known(v) ? "-" : Math.abs(v) >= 1e7 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(2) : String(+v.toPrecision(5));
const whole = v => known(v) ? Math.round(v).toLocaleString("en") : "-";
const percent = v => known(v) ? (100 * v).toFixed(1) + "%" : "-";
const level = known(data.figures.level) ? +(100 * data.figures.level).toPrecision(6) + "%" : "";
const tip = find("tip");
const margin = { left: 58, right: 14, top: 8, bottom: 24 };
const FONT = "12px system-ui, sans-serif";

function made(kind, text, name) {
  const element = document.createElement(kind);
  if (known(text)) element.textContent = text;
  if (name) element.className = name;
  return element;
}

function ticks(low, high, wanted, least = 0) {
  const rough = Math.max((high - low) / wanted || 1, least), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough);
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) out.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return out;
}

class Chart {  // x is zoomed by dragging or by keys; a view says what to draw (paint) and what to tell about a place (read)
  constructor(id, view) {
    this.canvas = find(id);
    this.title = find(id + "-title").textContent;
    this.height = +this.canvas.getAttribute("height");
    this.context = this.canvas.getContext("2d");
    this.legend = made("div", null, "key");
    this.canvas.after(this.legend);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.show(view);
    this.listen();
    const save = made("button", "save picture");
    save.setAttribute("aria-label", "save picture: " + this.title);
    save.onclick = () => this.save();
    this.canvas.parentElement.querySelector(".bar").append(save);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }
  listen() {
    const on = (name, what) => this.canvas.addEventListener(name, what);
    on("pointermove", e => this.move(e));
    on("pointerleave", () => this.leave());
    on("blur", () => this.leave());
    on("pointerdown", e => { this.from = e.offsetX; if (e.pointerType !== "touch") this.canvas.setPointerCapture(e.pointerId); });
    on("pointerup", e => this.release(e));
    on("pointercancel", () => { this.from = undefined; this.leave(); });
    on("dblclick", () => this.zoom(null));
    on("keydown", e => this.key(e));
  }
  show(view) {
    this.view = view; this.range = null; this.at = undefined;
    this.legend.replaceChildren(...(view.legend || []).map(([name, text]) => {
      const item = made("span"), mark = made("i");
      mark.style.background = `var(--${name})`;
      item.append(mark, text);
      return item; }));
    this.canvas.setAttribute("aria-label", this.title + ". " + (view.told || "") + " Arrow keys read off.");
    this.draw();
  }
  zoom(range) { this.range = range; this.draw(); }
  domain() { return this.range || this.view.domain; }
  inside(x) { const [a, b] = this.domain(); return x >= a && x <= b; }
  extent(series) {
    const all = [];
    for (const values of series) values.forEach((v, i) => { if (known(v) && this.inside(this.view.x[i])) all.push(v); });
    all.sort((a, b) => a - b);
    return all;
  }
  limits() {  // `series` set the range; `around`, which may be far away, widens it by half at most
    this.cut = false;
    if (this.view.limits) return this.view.limits;
    const all = this.extent(this.view.series), last = all.length - 1;
    if (last < 0) return [0, 1];
    let [low, high] = [all[0], all[last]];
    if (this.view.rare) {  // rare values that are far out, such as codes, are cut off
      const [a, b] = [all[Math.ceil(.005 * last)], all[Math.floor(.995 * last)]], far = 3 * (b - a);
      this.cut = far > 0 && (low < a - far || high > b + far);
      if (this.cut) [low, high] = [Math.max(low, a - far / 3), Math.min(high, b + far / 3)];
    }
    const around = this.extent(this.view.around || []), half = (high - low) / 2;
    const [least, most] = around.length ? [around[0], around[around.length - 1]] : [low, high];
    [low, high] = [Math.max(Math.min(low, least), low - half), Math.min(Math.max(high, most), high + half)];
    const room = (high - low) * .06 || Math.abs(high) * .06 || 1;
    return [this.view.zero ? 0 : low - room, high + room];
  }
  px(x) { const [a, b] = this.domain(); return margin.left + (x - a) / (b - a || 1) * (this.width - margin.left - margin.right); }
  py(y) { const [a, b] = this.span; return this.height - margin.bottom - (y - a) / (b - a || 1) * (this.height - margin.top - margin.bottom); }
  xAt(px) { const [a, b] = this.domain(); return a + (px - margin.left) / (this.width - margin.left - margin.right) * (b - a); }
  draw() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth; this.span = this.limits();
    this.canvas.width = this.width * ratio; this.canvas.height = this.height * ratio;
    this.canvas.style.height = this.height + "px";
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawOn(this.context);
  }
  drawOn(c) {
    const right = this.width - margin.right, bottom = this.height - margin.bottom;
    c.fillStyle = color("paper"); c.fillRect(0, 0, this.width, this.height);
    c.font = FONT; c.lineWidth = 1; c.strokeStyle = color("line"); c.fillStyle = color("soft");
    c.textAlign = "right"; c.textBaseline = "middle";
    for (const v of ticks(...this.span, 5)) {
      c.beginPath(); c.moveTo(margin.left, this.py(v)); c.lineTo(right, this.py(v)); c.stroke();
      c.fillText(short(v), margin.left - 6, this.py(v));
    }
    c.textAlign = "center"; c.textBaseline = "top";
    const labels = this.view.labels ? this.view.labels.map((text, i) => [i, text])
      : ticks(...this.domain(), Math.max(2, Math.floor(this.width / 90)), 1).map(v => [v, short(v)]);
    for (const [v, text] of labels) {
      const half = c.measureText(text).width / 2;
      c.fillText(text, Math.min(this.px(v), this.width - half - 2), bottom + 6);
    }
    c.save(); c.beginPath(); c.rect(margin.left, 0, right - margin.left, bottom); c.clip();
    this.shadeEvents(c);
    this.view.paint(this, c);
    c.restore();
  }
  shadeEvents(c) {  // rows that belong to events, with their numbers where there is room
    let free = -Infinity;
    for (const { start, end, event } of this.view.events || []) {
      const from = this.px(start - .5), to = Math.max(from + 2, this.px(end + .5)), text = String(event);
      c.fillStyle = color("alarm"); c.fillRect(from, 0, to - from, this.height - margin.bottom);
      if (from < free || from < margin.left || to > this.width) continue;
      c.fillStyle = color("bad"); c.textAlign = "left"; c.textBaseline = "top"; c.fillText(text, from + 1, margin.top - 6);
      free = from + c.measureText(text).width + 4;
    }
  }
  line(c, series, name, width, dash) {
    c.strokeStyle = color(name); c.lineWidth = width; c.setLineDash(dash || []); c.beginPath();
    let pen = false;
    series.forEach((v, i) => {
      if (!known(v)) { pen = false; return; }
      const x = this.px(this.view.x[i]), y = this.py(v);
      if (pen) c.lineTo(x, y); else c.moveTo(x, y);
      if (!pen && !known(series[i + 1])) c.rect(x - .5, y - .5, 1, 1);  // a point between gaps
      pen = true; });
    c.stroke(); c.setLineDash([]);
  }
  upright(c, row, name) {
    c.strokeStyle = color(name); c.lineWidth = 1.5; c.setLineDash([4, 3]); c.beginPath();
    c.moveTo(this.px(row), 0); c.lineTo(this.px(row), this.height - margin.bottom); c.stroke(); c.setLineDash([]);
  }
  columns(d, low, high) {  // smallest and largest value in each column of pixels
    const columns = new Map();
    d.row.forEach((row, i) => {
      if (!known(low[i]) || !known(high[i]) || !(this.inside(row) || this.inside(d.end[i]))) return;
      const first = Math.floor(this.px(row - .5)), last = Math.max(first, Math.ceil(this.px(d.end[i] + .5)) - 1);
      for (let x = Math.max(first, 0); x <= Math.min(last, this.width); x++) {
        const have = columns.get(x);
        columns.set(x, have ? [Math.min(have[0], low[i]), Math.max(have[1], high[i])] : [low[i], high[i]]);
      } });
    return [...columns].sort((a, b) => a[0] - b[0]);
  }
  fillRange(c, d, low, high, name, least = 1.5) {
    c.fillStyle = color(name);
    for (const [x, [a, b]] of this.columns(d, low, high)) {
      const tall = Math.max(least, this.py(a) - this.py(b));
      c.fillRect(x, (this.py(a) + this.py(b) - tall) / 2, 1, tall);
    }
  }
  outlineRange(c, d, low, high, name) {
    const columns = this.columns(d, low, high);
    c.strokeStyle = color(name); c.lineWidth = 1.3;
    for (const end of [0, 1]) {
      c.beginPath();
      columns.forEach(([x, range], i) => {
        const joined = i > 0 && x - columns[i - 1][0] <= 1, y = this.py(range[end]);
        if (joined) c.lineTo(x + .5, y); else c.moveTo(x + .5, y); });
      c.stroke();
    }
  }
  nearest(px) {
    const x = this.xAt(px); let best = -1, gap = Infinity;
    this.view.x.forEach((v, i) => { const d = Math.abs(v - x); if (d < gap) { gap = d; best = i; } });
    return best;
  }
  leave() { tip.style.display = "none"; this.at = undefined; this.draw(); }
  move(e) {
    this.tell(this.nearest(e.offsetX), e.clientX, e.clientY);
    if (this.from === undefined || e.pointerType === "touch") return;
    this.context.fillStyle = color("band");
    this.context.fillRect(this.from, margin.top, e.offsetX - this.from, this.height - margin.top - margin.bottom);
  }
  tell(i, x, y) {
    this.draw();
    if (i < 0) return;
    this.at = i;
    const c = this.context, at = this.px(this.view.x[i]);
    if (this.inside(this.view.x[i])) {
      c.strokeStyle = color("soft"); c.lineWidth = 1; c.beginPath(); c.moveTo(at, margin.top); c.lineTo(at, this.height - margin.bottom); c.stroke();
    }
    tip.textContent = this.view.read(i); tip.style.display = "block";
    tip.style.left = Math.max(6, Math.min(x + 14, document.documentElement.clientWidth - tip.offsetWidth - 6)) + "px";
    tip.style.top = Math.min(y + 14, window.innerHeight - tip.offsetHeight - 6) + "px";
  }
  release(e) {
    const a = this.xAt(Math.min(this.from, e.offsetX)), b = this.xAt(Math.max(this.from, e.offsetX));
    const dragged = this.from !== undefined && Math.abs(e.offsetX - this.from) > 6 && e.pointerType !== "touch";
    this.from = undefined;
    if (dragged && !this.view.labels) this.zoom([Math.max(a, this.view.domain[0]), Math.min(b, this.view.domain[1])]);
  }
  key(e) {
    const x = this.view.x, steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -x.length, End: x.length };
    if (e.key in steps) {
      const shown = x.map((_, i) => i).filter(i => this.inside(x[i]));
      if (!shown.length) return;
      const from = this.at === undefined ? shown[Math.floor(shown.length / 2)] : this.at + steps[e.key];
      const i = Math.max(shown[0], Math.min(shown[shown.length - 1], from)), box = this.canvas.getBoundingClientRect();
      this.tell(i, box.left + this.px(x[i]), box.top + 20);
    } else if ((e.key === "+" || e.key === "=") && !this.view.labels) {
      const [a, b] = this.domain(), center = this.at === undefined ? (a + b) / 2 : x[this.at], [first, last] = this.view.domain;
      this.zoom([Math.max(first, center - (b - a) / 4), Math.min(last, center + (b - a) / 4)]);
    } else if (e.key === "-" || e.key === "Escape") this.zoom(null);
    else return;
    e.preventDefault();
  }
  picture() {  // title, chart and legend on one canvas, at twice the size
    this.draw();
    const sheet = made("canvas"), c = sheet.getContext("2d");
    const items = this.view.legend || [], top = 44, bottom = items.length ? 26 : 6;
    sheet.width = 2 * this.width; sheet.height = 2 * (this.height + top + bottom);
    c.scale(2, 2); c.fillStyle = color("paper"); c.fillRect(0, 0, this.width, this.height + top + bottom);
    c.fillStyle = color("ink"); c.textBaseline = "top"; c.font = "600 14px system-ui, sans-serif"; c.fillText(this.title, 10, 6, this.width - 20);
    c.fillStyle = color("soft"); c.font = FONT; c.fillText(heading, 10, 25, this.width - 20);
    c.save(); c.translate(0, top); this.drawOn(c); c.restore();
    c.textAlign = "left"; c.textBaseline = "middle"; c.font = FONT;
    let x = margin.left;
    for (const [name, text] of items) {
      c.fillStyle = color(name); c.fillRect(x, top + this.height + 8, 14, 8);
      c.fillStyle = color("soft"); c.fillText(text, x + 19, top + this.height + 12.5);
      x += 33 + c.measureText(text).width;
    }
    return sheet;
  }
  save() {
    const link = made("a");
    link.href = this.picture().toDataURL("image/png"); link.download = "onlinegp-" + this.canvas.id + ".png";
    document.body.append(link); link.click(); link.remove();
  }
}

// What each chart shows

const span = (a, b) => a === b ? short(a) : short(a) + " to " + short(b);
const rowsOf = (d, i) => d.row[i] === d.end[i] ? "row " + whole(d.row[i]) : "rows " + whole(d.row[i]) + " to " + whole(d.end[i]);
const everything = [.5, data.figures.rows + .5];

const events = data.events.map(event => ({ ...event, open: event.end === null,
  end: event.end ?? (data.by === undefined ? data.figures.rows : Math.max(event.peak, ...(event.scene ? [event.scene.row + event.scene.y.length - 1] : []))) }));
function bandView(d, ranges) {
  const x = d.row.map((row, i) => (row + d.end[i]) / 2);
  const legend = ranges ? [["band", level + " interval, widest"], ["range", "data, lowest to highest"], ["mean", "mean, lowest and highest"]]
    : [["band", level + " interval"], ["data", "data"], ["mean", "mean"]];
  return { x, domain: d.row.length ? [d.row[0] - .5, d.end[d.end.length - 1] + .5] : [0, 1], legend,
    rare: ranges, series: [d.y_low, d.y_high, d.mean_low, d.mean_high], around: [d.lower, d.upper],
    told: "Data, mean and interval by row.", events: data.by === undefined ? events : [],
    read: i => rowsOf(d, i) + "\ndata " + span(d.y_low[i], d.y_high[i]) + "\nmean " + span(d.mean_low[i], d.mean_high[i]) +
      "\ninterval " + short(d.lower[i]) + " to " + short(d.upper[i]),
    paint(chart, c) {
      chart.fillRange(c, d, d.lower, d.upper, "band");
      if (ranges) {
        chart.fillRange(c, d, d.y_low, d.y_high, "range");
        chart.outlineRange(c, d, d.mean_low, d.mean_high, "mean");
        return;
      }
      chart.line(c, d.mean_low, "mean", 1.6);
      c.fillStyle = color("data");
      d.row.forEach((row, i) => { if (known(d.y_low[i])) c.fillRect(chart.px(row) - 1.4, chart.py(d.y_low[i]) - 1.4, 2.8, 2.8); });
    } };
}
function linesView(x, lines, legend, read, more) {  // lines: [values, color, dash]
  return { x, domain: everything, series: lines.map(([values]) => values), legend, read,
    paint: (chart, c) => lines.forEach(([values, name, dash]) => chart.line(c, values, name, 1.7, dash)), ...more };
}
function barView(labels, heights, limits, legend, read, marks) {
  return { x: heights.map((_, i) => i), labels, domain: [-.6, heights.length - .4], limits, series: [heights], legend, read,
    paint(chart, c) {
      c.fillStyle = color("mean");
      const half = (chart.px(1) - chart.px(0)) * .4;
      heights.forEach((h, i) => { if (known(h)) c.fillRect(chart.px(i) - half, chart.py(h), 2 * half, chart.py(limits[0]) - chart.py(h)); });
      c.strokeStyle = color("data"); c.lineWidth = 2;
      marks(chart, c, half);
    } };
}
function table(id, head, rows, texts) {  // the first `texts` columns are text
  const all = [head, ...rows].map((cells, r) => {
    const line = made("tr");
    line.append(...cells.map((cell, i) => {
      const element = made(r ? "td" : "th", cell, i < texts ? "text" : "");
      if (!r) element.scope = "col";
      return element; }));
    return line; });
  const top = made("thead"), body = made("tbody");
  top.append(all[0]); body.append(...all.slice(1));
  find(id).replaceChildren(top, body);
}

// The page

const f = data.figures, heading = `${data.model}: ${data.target} of ${data.source === "-" ? "standard input" : data.source}`;
find("title").textContent = heading;
function story() {
  if (!f.scored) return "No row was scored: every one has no target, or was predicted before any was learned.";
  const b = data.baselines || {};
  const against = name => known(b[name]) && b[name] > 0 ? percent(b.model / b[name]) + " of that of " : "";
  const opened = Object.values(f.events || {}).reduce((sum, count) => sum + count, 0);
  const events = opened === 1 ? " 1 event opened." : opened ? ` ${whole(opened)} events opened; the worst come first below.` : "";
  const later = f.later ? ` The first rows were predicted by mean and spread. Of the last ${whole(f.later.scored)}, which the model ` +
    `predicted, ${percent(f.later.coverage)} fell into their intervals, and the root mean squared error is ${short(f.later.rmse)}.` : "";
  if (data.by !== undefined) return `Each row was predicted before it was learned, by the model of its ${data.by}. Of ` +
    `${whole(f.scored)} scored rows of ${whole(f.keys)} keys, ${percent(f.coverage)} fell into their ${level} intervals.` + events + later;
  return `Each row was predicted before it was learned. Of ${whole(f.scored)} scored rows, ${percent(f.coverage)} fell into their ` +
    `${level} intervals.${events} The root mean squared error is ${short(f.rmse)}: ${against("persistence")}the value before ` +
    `(persistence), ${against("mean")}the mean of the target.${later}` +
    (f.rows > f.scored + 1 ? ` ${whole(f.rows - f.scored)} rows are not scored: without a target, or predicted before any was learned.` : "");
}
find("story").textContent = story();
const tiles = [["rows", whole(f.rows)], ["scored", whole(f.scored)], ["nMSE", known(f.nmse_db) ? f.nmse_db.toFixed(2) + " dB" : "-"],
  ["RMSE", short(f.rmse)], ["mean log density", short(f.log_density)],
  [level ? level + " intervals cover" : "coverage", percent(f.coverage)],
  data.by === undefined ? ["centers", whole(f.centers)] : ["keys", whole(f.keys)], ["rows per second", whole(f.rows_per_second)]];
for (const [name, value] of tiles) {
  const tile = made("div", null, "tile");
  tile.append(made("b", value), made("span", name));
  find("tiles").append(tile);
}

const charts = {}, alongPart = data.by === undefined;
for (const name of ["band", "error", "along", "weights", "size"]) find(name + "-part").hidden = !alongPart;
const views = alongPart ? { whole: bandView(data.whole, data.width > 1), tail: bandView(data.tail, false) } : {};
if (alongPart) charts.band = new Chart("band", views.whole);
function choose(name) {
  charts.band.show(views[name]);
  for (const other of ["whole", "tail"]) find("show-" + other).setAttribute("aria-pressed", String(other === name));
  find("grain").textContent = name === "tail" ? "The last rows, one by one."
    : (data.width > 1 ? "Ranges over " + data.width + " rows or more: nothing is averaged. See the last rows for single predictions." : "") +
      (charts.band.cut ? " Rare values far outside the picture are cut off: zoom in to see them." : "");
}
if (alongPart) for (const name of ["whole", "tail"]) find("show-" + name).onclick = () => choose(name);
if (alongPart) choose("whole");

function sceneView(event) {  // the rows around an event, one by one
  const s = event.scene, row = s.y.map((_, i) => s.row + i);
  const d = { row, end: row, y_low: s.y, y_high: s.y, mean_low: s.mean, mean_high: s.mean, lower: s.lower, upper: s.upper };
  return { ...bandView(d, false), alone: true, events: [event], told: event.reason };
}
function showEvent(event) {
  find("event-title").textContent = `Event ${event.event}${event.key ? " of " + event.key : ""}: ${event.reason}`;
  find("event").hidden = !event.scene;
  find("no-scene").hidden = Boolean(event.scene);
  if (charts.event) charts.event.legend.hidden = !event.scene;
  if (event.scene) { charts.event ? charts.event.show(sceneView(event)) : charts.event = new Chart("event", sceneView(event)); }
  if (alongPart) {
    const wide = Math.max(60, 2 * (event.end - event.start)), last = data.figures.rows + .5;
    choose("whole"); charts.band.zoom([Math.max(.5, event.start - wide), Math.min(last, event.end + wide)]);
  }
}
find("events-part").hidden = !events.length;
find("trouble-part").hidden = alongPart || !events.length;
if (events.length) {
  const worst = [...events].sort((x, y) => y.severity - x.severity), keyed = !alongPart;
  table("events", ["", "event", ...(keyed ? [data.by] : []), "rows", "kind", "severity", "reason"], worst.map(x => ["", x.event,
    ...(keyed ? [x.key] : []), x.open ? `since ${x.start}` : span(x.start, x.end), x.kind, x.severity.toFixed(1), x.reason]), 0);
  document.querySelectorAll("#events tbody tr").forEach((line, i) => {
    const show = made("button", "show");
    show.setAttribute("aria-label", "show event " + worst[i].event);
    show.onclick = () => showEvent(worst[i]);
    line.firstChild.append(show); line.lastChild.className = "text reason"; });
  find("events").querySelector("th:last-child").className = "text";
  showEvent(worst.find(x => x.scene) || worst[0]);
  if (alongPart) charts.band.zoom(null);
  const trouble = new Map();
  for (const x of events) trouble.set(x.key, [...(trouble.get(x.key) || []), x]);
  const lines = [...trouble].map(([key, own]) => [key, own, Math.max(...own.map(x => x.severity))]).sort((x, y) => y[2] - x[2]);
  if (keyed) table("trouble", [data.by, "events", "worst severity", "kinds"], lines.map(([key, own, most]) => [key, own.length, most.toFixed(1),
    [...new Set(own.map(x => x.kind))].join(", ")]), 1);
}

if (alongPart) along();
function along() {
const e = data.error, b = data.baselines, meanLevel = known(b.mean) && b.mean > 0 ? 20 * Math.log10(b.mean) : null;
charts.error = new Chart("error", linesView(e.row,
  [[e.persistence, "data", [5, 3]], [e.row.map(() => meanLevel), "soft", [2, 3]], [e.model, "mean"]],
  [["mean", data.model], ["data", "persistence"], ["soft", "mean of the target"]],
  i => "up to row " + whole(e.row[i]) + "\n" + data.model + " " + short(e.model[i]) + " dB\npersistence " + short(e.persistence[i]) + " dB"));
const decibel = v => known(v) && v > 0 ? (20 * Math.log10(v)).toFixed(2).replace(/^-0.00$/, "0.00") : "-";
table("baselines", ["prediction", "RMSE", "MSE [dB]"], [[data.model, b.model], ["persistence: the target before", b.persistence],
  ["mean of the target", b.mean]].map(([name, v]) => [name, short(v), decibel(v)]), 1);

const v = data.coverage, points = v.row.map((row, i) => (row + v.end[i]) / 2);
find("along-part").hidden = points.length < 5;
if (points.length >= 5) charts.along = new Chart("along", linesView(points, [[points.map(() => f.level), "data", [5, 3]], [v.share, "mean"]],
  [["mean", "observed"], ["data", "nominal"]], i => rowsOf(v, i) + "\n" + percent(v.share[i]) + " inside"));

const w = data.weights, shades = ["mean", "data", "good", "other", "ink", "soft", "gold", "brown", "pink", "bad"];
find("weights-part").hidden = !w.row.length;
if (w.row.length) charts.weights = new Chart("weights", { x: w.row.map((row, i) => (row + w.end[i]) / 2), limits: [0, 1],
  series: w.series, domain: everything, legend: w.members.map((name, k) => [shades[k % shades.length], name]),
  read: i => rowsOf(w, i) + w.members.map((name, k) => "\n" + name + " " + percent(w.series[k][i])).join("") +
    w.changes.filter(([row]) => w.row[i] <= row && row <= w.end[i]).map(([row, kind]) => `\n${kind} changed at row ${whole(row)}`).join(""),
  paint(chart, c) {  // one on top of the other: together they are one
    let below = w.row.map(() => 0);
    w.series.forEach((values, k) => {
      const above = values.map((v, i) => below[i] + v);
      chart.fillRange(c, w, below, above, shades[k % shades.length], 0);
      below = above; });
    for (const [row] of w.changes) chart.upright(c, row, "bad");
  } });

}
const odd = data.surprises, keys = odd.length ? Object.keys(odd[0].keys) : [];
find("surprises-part").hidden = !odd.length;
table("surprises", ["row", ...keys, data.target, "mean", "std", "z", "tail"], odd.map(row => [whole(row.row),
  ...keys.map(name => row.keys[name] ?? "-"), ...["y", "mean", "std", "z"].map(name => short(row[name])),
  row.tail > 0 ? short(row.tail) : "below 1e-15"]), 0);

const total = data.pit.reduce((x, y) => x + y, 0) || 1, density = data.pit.map(n => n / total * data.pit.length);
charts.pit = new Chart("pit", barView(density.map((_, i) => i % 5 ? "" : (i / density.length).toFixed(2)), density,
  [0, Math.max(2, ...density) * 1.05], [["mean", "density of the rows"], ["data", "if calibrated"]],
  i => (i / density.length).toFixed(2) + " to " + ((i + 1) / density.length).toFixed(2) + "\n" + data.pit[i] + " rows, density " + density[i].toFixed(2),
  (chart, c) => { c.beginPath(); c.moveTo(margin.left, chart.py(1)); c.lineTo(chart.width, chart.py(1)); c.stroke(); }));
charts.coverage = new Chart("coverage", barView(data.levels.map(v => Math.round(100 * v) + "%"), data.within, [0, 1.05],
  [["mean", "observed"], ["data", "nominal"]], i => "nominal " + percent(data.levels[i]) + "\nobserved " + percent(data.within[i]),
  (chart, c, half) => data.levels.forEach((v, i) => { c.beginPath(); c.moveTo(chart.px(i) - half * 1.15, chart.py(v));
    c.lineTo(chart.px(i) + half * 1.15, chart.py(v)); c.stroke(); })));
if (alongPart) charts.size = new Chart("size", linesView(data.whole.row, [[data.whole.size, "good"]], [],
  i => rowsOf(data.whole, i) + "\n" + short(data.whole.size[i]) + " centers", { zero: true }));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Object.values(charts).forEach(chart => chart.draw()));
document.body.dataset.ready = "yes";
