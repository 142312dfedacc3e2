"use strict";
// One idea: everything that is shown is a row that knows places in the source (p) and steps of the program (s).
// What is selected is a set of places and a set of steps, and a row is lit where it shares both.

const DATA = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const COLOURS = ["--a", "--b", "--c", "--d", "--e", "--f"];
const colour = (number) => `var(${COLOURS[number % COLOURS.length]})`;

function element(tag, attributes = {}, ...children) {
  const svg = ["svg", "rect", "circle", "line", "path", "text", "g", "title"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function scaled(number, units) {
  for (const [unit, scale] of units) if (number >= scale) return `${+(number / scale).toPrecision(3)} ${unit}`;
  const [unit, scale] = units[units.length - 1];
  return `${+(number / scale).toPrecision(3)} ${unit}`;
}
const duration = (s) => scaled(s, [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]]);
const bytes = (n) => scaled(n, [["GB", 1e9], ["MB", 1e6], ["KB", 1e3], ["bytes", 1]]);
const rate = (n, unit) => scaled(n, [[`T${unit}`, 1e12], [`G${unit}`, 1e9], [`M${unit}`, 1e6], [`k${unit}`, 1e3], [unit, 1]]);
const percent = (part, whole) => whole ? `${Math.round(100 * part / whole)} %` : "";

// ---- what is selected

let program = null;          // the one that is shown
let rows = [];               // {node, p, s, about} of all panes that were built
let chosen = { places: new Set(), steps: new Set() };
let cursor = null;           // the row that was chosen last

const shares = (list, set) => list.some((x) => set.has(x));

function isLit(row) {
  if (!row.p.length && !row.s.length) return false;
  if (!row.p.length) return shares(row.s, chosen.steps);
  if (!row.s.length || !chosen.steps.size) return shares(row.p, chosen.places);
  return shares(row.p, chosen.places) && shares(row.s, chosen.steps);
}

function row(node, places, steps, about = "") {
  const made = { node, p: places || [], s: steps || [], about };
  rows.push(made);
  if (made.p.length || made.s.length) {
    node.classList.add("linked");
    node.addEventListener("click", () => choose(made));
  }
  if (isLit(made)) light(made);
  return made;
}

function choose(from) {
  const steps = new Set(from.s), places = new Set(from.p);
  if (program && !from.s.length) program.steps.forEach((step, i) => shares(step.places, places) && steps.add(i));
  if (program && !from.p.length) from.s.forEach((i) => program.steps[i].places.forEach((p) => places.add(p)));
  chosen = { places, steps };
  refresh(from);
}

function clear() {
  chosen = { places: new Set(), steps: new Set() };
  refresh(null);
}

function refresh(from) {
  cursor?.node.classList.remove("cursor");
  cursor = from;
  from?.node.classList.add("cursor");
  rows.forEach(light);
  const pane = document.querySelector(".pane:not([hidden])");
  for (const box of [$("source"), pane]) {
    if (!box || (from && box.contains(from.node))) continue;
    const first = rows.find((r) => r.lit && box.contains(r.node));
    reveal(first?.node, "center");
  }
  reveal(from?.node, "nearest");
  $("status").textContent = from ? from.about || spoken() : "";
}

// Scrolls up and down only: the beginning of lines stays in sight.
function reveal(node, block) {
  const box = node?.closest(".pane, .lines"), left = box?.scrollLeft;
  node?.scrollIntoView({ block, inline: "nearest" });
  if (box) box.scrollLeft = left;
}

function light(each) {
  const lit = isLit(each);
  if (lit !== !!each.lit || each.span) {
    each.lit = lit;
    each.node.classList.toggle("lit", lit);
    if (each.node.getAttribute("role") === "option") each.node.setAttribute("aria-selected", lit);
    each.span?.(lit);
  }
}

function spoken() {
  const steps = program ? [...chosen.steps].filter((i) => program.steps[i].leaf) : [];
  if (!steps.length) return "";
  const seconds = steps.reduce((sum, i) => sum + program.steps[i].seconds, 0);
  const named = steps.length < 7 ? ` (${steps.map((i) => program.steps[i].name).join(", ")})` : "";
  const count = steps.length === 1 ? "1 step" : `${steps.length} steps`;
  return `${count}${named}: ${duration(seconds)}, ${percent(seconds, program.seconds)} of the call`;
}

// ---- the source

function placesByLine() {
  const found = new Map();
  DATA.places.forEach(([file, first, last], place) => {
    for (let line = first; line <= last; line++) {
      const key = `${file}:${line}`;
      found.has(key) ? found.get(key).push(place) : found.set(key, [place]);
    }
  });
  return found;
}

function secondsOf(places) {
  if (!program) return 0;
  const here = new Set(places);
  return program.steps.reduce((sum, step) => sum + (step.leaf && shares(step.places, here) ? step.seconds : 0), 0);
}

function showSource() {
  const box = $("source"), known = placesByLine();
  box.replaceChildren();
  DATA.files.forEach((file, number) => {
    box.append(element("h3", { title: file.path }, file.name));
    if (!file.blocks.length) box.append(element("p", {}, "  its source is not at hand"));
    file.blocks.forEach((block, nth) => {
      if (nth) box.append(element("hr"));
      block.lines.forEach((text, i) => {
        const line = block.first + i, places = known.get(`${number}:${line}`) || [];
        const note = lineNote(number, line, places);
        const heat = element("span", { class: "heat" }, note.text);
        if (note.share > 0) heat.style.background = `rgba(var(--heat), ${0.12 + 0.7 * note.share})`;
        const code = element("span", {}, text);
        const node = element("div", { role: "option", "aria-selected": "false" },
          element("span", { class: "number" }, String(line)), heat, code);
        box.append(node);
        row(node, places, [], note.about).span = (lit) => underline(code, text, number, line, lit);
      });
    });
  });
}

function lineNote(file, line, places) {
  const extra = (DATA.notes || {})[`${file}:${line}`];
  if (extra) return extra;
  const seconds = places.length ? secondsOf(places) : 0;
  return { text: seconds ? duration(seconds) : "", share: seconds ? seconds / program.seconds : 0, about: "" };
}

function underline(code, text, file, line, lit) {
  const marks = new Array(text.length).fill(false);
  let any = false;
  if (lit) for (const place of chosen.places) {
    const [f, first, last, start, end] = DATA.places[place];
    if (f !== file || first !== line || last !== line || !end) continue;
    marks.fill(true, start, end);
    any = true;
  }
  if (!any) { if (code.firstElementChild) code.textContent = text; return; }
  code.textContent = "";
  for (let i = 0, j; i < text.length; i = j) {
    for (j = i; j < text.length && marks[j] === marks[i]; j++);
    code.append(marks[i] ? element("mark", {}, text.slice(i, j)) : text.slice(i, j));
  }
}

// ---- the panes

function table(titles, lines) {
  const made = element("table"), body = element("tbody");
  made.append(element("thead", {}, element("tr", {}, ...titles.map(([t, kind]) => element("th", { class: kind || "" }, t)))), body);
  for (const { cells, places, steps, about, enter } of lines) {
    const node = element("tr", {}, ...cells.map((cell, i) => {
      const made = element("td", { class: titles[i][1] || "" }, typeof cell === "object" ? cell.text : cell);
      if (titles[i][1] === "text wide") made.title = cell;
      if (typeof cell === "object") { made.classList.add("share"); made.style.setProperty("--part", `${100 * cell.part}%`); }
      return made;
    }));
    body.append(node);
    row(node, places, steps, about).enter = enter;
    if (enter) { node.lastChild.classList.add("enter"); node.lastChild.addEventListener("click", enter); }
  }
  return made;
}

function stepsPane(box) {
  const top = program.ceilings, whole = program.seconds;
  const titles = [["time"], ["share"], ["step", "text wide"], ["runs"], ["moved"], ["B/s"], ["of memory"], ["flop/s"], ["of peak"], ["source", "text"]];
  box.append(table(titles, program.steps.map((step, i) => {
    const moved = step.bytes * step.runs / step.seconds, done = step.flops * step.runs / step.seconds;
    const ran = step.seconds > 0;
    return { places: step.places, steps: [i], cells: [
      duration(step.seconds), { text: percent(step.seconds, whole), part: step.seconds / whole },
      `${"\u2003".repeat(step.depth)}${i}  ${step.name} ${step.detail}`, String(step.runs),
      bytes(step.bytes), ran ? rate(moved, "B/s") : "", !ran ? "" : moved > top.bytes_per_second ? "cache" : percent(moved, top.bytes_per_second),
      ran && step.flops ? rate(done, "flop/s") : "", ran && step.flops ? percent(done, step.most) : "", step.where,
    ], about: `${i} ${step.name} ${step.detail}: ${duration(step.seconds)}, ${percent(step.seconds, whole)} of the call` };
  })));
  box.append(element("h2", {}, "Against what this machine does at most"), roofline(),
    element("p", {}, "Measured on this machine. A step below a slanted line waits for bytes, one below the flat line for arithmetic; "
      + "beyond the memory line its operands were in a cache, which the table says, too. Bytes are what a step reads and writes at most."));
}

function roofline() {
  const wide = 640, high = 260, left = 62, low = 28, top = program.ceilings;
  const shown = program.steps.map((s, i) => ({ s, i })).filter(({ s }) => s.leaf && s.flops && s.bytes && s.seconds);
  const xs = shown.map(({ s }) => Math.log10(s.flops / s.bytes)), peak = Math.log10(top.flops_per_second);
  const ys = shown.map(({ s }) => Math.log10(s.flops * s.runs / s.seconds));
  const x0 = Math.floor(Math.min(-1, ...xs)), x1 = Math.ceil(Math.max(2, ...xs));
  const y0 = Math.floor(Math.min(peak - 2, ...ys)), y1 = Math.ceil(Math.max(peak, ...ys) + 0.1);
  const X = (x) => left + (x - x0) / (x1 - x0) * (wide - left - 8), Y = (y) => high - low - (y - y0) / (y1 - y0) * (high - low - 10);
  const drawn = element("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: "img", "aria-label": "roofline" });
  for (let y = y0; y <= y1; y++) drawn.append(element("line", { class: "axis", x1: left, x2: wide - 8, y1: Y(y), y2: Y(y) }),
    element("text", { x: left - 6, y: Y(y) + 4, "text-anchor": "end" }, rate(10 ** y, "flop/s")));
  for (let x = x0; x <= x1; x++) drawn.append(element("text", { x: X(x), y: high - 12, "text-anchor": "middle" }, String(+(10 ** x).toPrecision(1))));
  drawn.append(element("text", { x: wide - 8, y: high, "text-anchor": "end" }, "operations for each byte"));
  for (const [name, speed] of [["memory", top.bytes_per_second], ["cache", top.cached_bytes_per_second]]) {
    const at = (x) => Math.min(x + Math.log10(speed), peak), bend = Math.min(Math.max(peak - Math.log10(speed), x0), x1);
    const from = Math.max(x0, y0 - Math.log10(speed));
    drawn.append(element("path", { class: "roof", d: `M${X(from)},${Y(at(from))}L${X(bend)},${Y(at(bend))}L${X(x1)},${Y(at(x1))}` }),
      element("text", { x: X(from) + 4, y: Y(at(from)) + (name === "memory" ? 16 : -6) }, `${name} ${rate(speed, "B/s")}`));
  }
  drawn.append(element("text", { x: wide - 10, y: Y(peak) - 5, "text-anchor": "end" }, rate(top.flops_per_second, "flop/s")));
  shown.forEach(({ s, i }, n) => {
    const dot = element("circle", { class: "item", cx: X(xs[n]), cy: Y(ys[n]), r: 4 + 14 * Math.sqrt(s.seconds / program.seconds), fill: colour(i) },
      element("title", {}, `${i} ${s.name} ${s.detail}: ${rate(10 ** ys[n], "flop/s")}, ${duration(s.seconds)}`));
    drawn.append(dot);
    row(dot, s.places, [i]);
  });
  return drawn;
}

function memoryPane(box) {
  const { arena, buffers } = program.memory, count = program.steps.length;
  const sum = (kind) => buffers.filter((b) => b.kind === kind).reduce((n, b) => n + b.bytes, 0);
  const base = sum("argument") + sum("result") + sum("constant");
  const pieces = buffers.filter((b) => b.kind === "arena");
  const total = Array.from({ length: count }, (_, i) => base + pieces.reduce((n, b) => n + (b.first <= i && i <= b.last ? b.bytes : 0), 0));
  const peak = total.length ? total.indexOf(Math.max(...total)) : 0;
  box.append(element("p", {}, `arguments ${bytes(sum("argument"))}, results ${bytes(sum("result"))}, constants ${bytes(sum("constant"))}, `
    + `temporaries ${bytes(arena)}; most at step ${peak}: ${bytes(total[peak] || base)}`));
  const wide = 680, high = 230, left = 66, X = (i) => left + i * (wide - left) / Math.max(count, 1);
  if (arena) {
    const Y = (n) => 10 + (high - 34) * (1 - n / arena);
    const map = element("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: "img", "aria-label": "temporary memory, step by step" });
    for (const part of [0, 0.5, 1]) map.append(element("line", { class: "axis", x1: left, x2: wide, y1: Y(part * arena), y2: Y(part * arena) }),
      element("text", { x: left - 6, y: Y(part * arena) + 4, "text-anchor": "end" }, bytes(part * arena)));
    const every = Math.ceil(count / 24);
    for (let i = 0; i < count; i += every) map.append(element("text", { x: (X(i) + X(i + 1)) / 2, y: high - 8, "text-anchor": "middle" }, String(i)));
    pieces.forEach((b, n) => {
      const steps = users(b), bar = element("rect", { class: "item", x: X(b.first), y: Y(b.at + b.bytes), width: Math.max(X(b.last + 1) - X(b.first) - 1, 1),
        height: Math.max(Y(b.at) - Y(b.at + b.bytes) - 1, 1), fill: colour(n) }, element("title", {}, told(b)));
      map.append(bar);
      row(bar, [], steps, told(b));
    });
    box.append(element("h2", {}, "Temporaries: where they lie, from step to step"), map);
  }
  const live = element("svg", { viewBox: `0 0 ${wide} 110`, width: wide, height: 110, role: "img", "aria-label": "bytes in use" });
  const most = Math.max(1, ...total), Z = (n) => 90 - 80 * n / most;
  const steps = total.map((n, i) => `L${X(i)},${Z(n)}L${X(i + 1)},${Z(n)}`).join("");
  live.append(element("path", { class: "curve", d: `M${X(0)},90${steps}L${X(count)},90Z` }), element("text", { x: left - 6, y: 14, "text-anchor": "end" }, bytes(most)),
    element("text", { x: left, y: 106 }, "steps"));
  box.append(element("h2", {}, "All that is in use"), live);
  const titles = [["bytes"], ["from"], ["to"], ["memory", "text"], ["holds", "text"], ["written by", "text"], ["line", "text"], ["read by", "text"]];
  const sorted = [...buffers].sort((a, b) => b.bytes - a.bytes);
  box.append(element("h2", {}, "Who holds what"), table(titles, sorted.map((b) => ({ places: [], steps: users(b), about: told(b), cells: [
    bytes(b.bytes), String(b.first), String(b.last), b.title, b.type || "", (b.writes || []).join(", "), writer(b), (b.reads || b.scratch || []).join(", ")] }))));
}

const users = (b) => [...new Set([...(b.writes || []), ...(b.reads || []), ...(b.scratch || [])])];

// The line of the user's that the innermost step which writes a piece of memory does.
const writer = (b) => (b.writes || []).filter((i) => program.steps[i].leaf).map((i) => program.steps[i].where)[0] || "";

function told(b) {
  const by = (b.writes || []).map((i) => `${i} ${program.steps[i].name} (${program.steps[i].where})`).join(", ");
  return `${b.title}: ${bytes(b.bytes)} ${b.type || ""}${by ? `, written by step ${by}` : ""}${b.reads ? `, read by ${b.reads.join(", ")}` : ""}`;
}

const textPane = (name) => (box) => {
  box.classList.add("lines");
  box.setAttribute("role", "listbox");
  box.setAttribute("aria-label", name);
  box.tabIndex = 0;
  for (const [text, places, steps] of program.stages[name]) {
    const node = element("div", { role: "option", "aria-selected": "false" }, text);
    box.append(node);
    row(node, places, typeof steps === "number" ? program.lists[steps] : steps);
  }
};

function scriptPane(box) {
  const { seconds, calls, compiling, running, lines } = DATA.script;
  box.append(element("p", {}, `${duration(seconds)} in all: compiled functions ran ${duration(running)}, tracing and compiling took ${duration(compiling)}, `
    + `the rest, ${duration(Math.max(0, seconds - running - compiling))}, is Python and evaluation outside of jit.`));
  const wide = 680, high = 24 + 18 * Math.min(calls.length, 24), X = (t) => 4 + t / seconds * (wide - 8);
  const chart = element("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: "img", "aria-label": "calls over time" });
  calls.slice(0, 24).forEach((call, n) => call.spans.forEach(([start, took, compiled]) => {
    const bar = element("rect", { class: "item", x: X(start), y: 4 + 18 * n, width: Math.max(1, X(start + took) - X(start)), height: 14, fill: compiled ? "var(--b)" : colour(0) },
      element("title", {}, `${call.name} at ${duration(start)}: ${duration(took)}${compiled ? ", compiled" : ""}`));
    chart.append(bar);
    row(bar, call.places, []);
  }));
  chart.append(element("text", { x: 4, y: high - 4 }, "0"), element("text", { x: wide - 4, y: high - 4, "text-anchor": "end" }, duration(seconds)));
  const titles = [["time"], ["share"], ["calls"], ["each"], ["compiling"], ["traces"], ["function", "text"], ["called from", "text"], ["steps", "text"]];
  box.append(table(titles, calls.map((c) => ({ places: c.places, steps: [], about: `${c.name}, ${c.calls} calls`, cells: [
    duration(c.running), { text: percent(c.running, seconds), part: c.running / seconds }, String(c.calls), c.calls ? duration(c.running / c.calls) : "",
    c.compiling ? duration(c.compiling) : "", String(c.traces), c.name, c.where, c.program === null ? c.why : "its steps"],
      enter: c.program === null ? null : () => show(c.program, "steps") }))),
    element("h2", {}, "When they were called (orange: traced and compiled)"), chart,
    element("h2", {}, "By line of the script"), table([["time"], ["share"], ["calls"], ["line", "text"]], lines.map((l) => ({ places: l.places, steps: [],
      cells: [duration(l.seconds), { text: percent(l.seconds, seconds), part: l.seconds / seconds }, String(l.calls), l.where] }))));
}

function heldPane(box) {
  const { total, about, items } = DATA.held;
  box.append(element("p", {}, about), table([["bytes"], ["share"], ["arrays"], ["what", "text"], ["where", "text"]], items.map((item) => ({
    places: item.places, steps: [], about: `${item.what}: ${bytes(item.bytes)}, ${item.where}`,
    cells: [bytes(item.bytes), { text: percent(item.bytes, total), part: total ? item.bytes / total : 0 }, String(item.count), item.what, item.where] }))));
}

const PANES = {
  script: ["Script", scriptPane, () => DATA.script], held: ["Memory", heldPane, () => DATA.held],
  steps: ["Steps", stepsPane], memory: ["Memory", memoryPane], fusion: ["Fusion", textPane("fusion")], jaxpr: ["jaxpr", textPane("jaxpr")],
  graph: ["Graph", textPane("graph")], program: ["Program", textPane("program")], kernels: ["Kernels", textPane("kernels")],
  llvm: ["LLVM", textPane("llvm")], assembly: ["Assembly", textPane("assembly")],
};

let pane = "";

function open(name, focus = false) {
  pane = name;
  for (const tab of $("tabs").children) {
    const on = tab.dataset.pane === name;
    tab.setAttribute("aria-selected", on);
    tab.tabIndex = on ? 0 : -1;
    if (on && focus) tab.focus();
  }
  for (const box of $("panes").children) box.hidden = box.id !== `pane-${name}`;
  if ($(`pane-${name}`)) return;
  const box = element("div", { class: "pane", id: `pane-${name}`, role: "tabpanel", "aria-label": PANES[name][0] });
  $("panes").append(box);
  PANES[name][1](box);
  reveal(rows.find((r) => r.lit && box.contains(r.node))?.node, "center");
}

// ---- a program

function show(number, name) {
  program = DATA.programs[number] || null;
  rows = [];
  chosen = { places: new Set(), steps: new Set() };
  cursor = null;
  $("panes").replaceChildren();
  $("programs").value = String(number);
  $("title").textContent = DATA.title;
  if (program) {
    const top = program.ceilings;
    $("summary").textContent = `${DATA.programs.length > 1 ? program.name + ": " : ""}${duration(program.seconds)} a call, ${program.steps.length} steps; this machine copies `
      + `${rate(top.bytes_per_second, "B/s")} and does ${rate(top.flops_per_second, "flop/s")}`;
  }
  if (DATA.held) $("summary").textContent = DATA.held.about;
  else if (!program) $("summary").textContent = DATA.script ? duration(DATA.script.seconds) : "";
  const shown = Object.keys(PANES).filter((key) => PANES[key][2] ? PANES[key][2]() : program);
  $("tabs").replaceChildren(...shown.map((key, i) => {
    const tab = element("button", { role: "tab", "data-pane": key, title: i < 10 ? `key ${(i + 1) % 10}` : "" }, PANES[key][0]);
    tab.addEventListener("click", () => open(key));
    return tab;
  }));
  showBar();
  showSource();
  open(name || shown[0]);
}

function showBar() {
  $("bar").replaceChildren();
  for (const [i, step] of program ? program.steps.entries() : []) {
    if (!step.leaf || step.seconds < program.seconds / 2000) continue;
    const node = element("div", { title: `${i} ${step.name} ${step.detail}: ${duration(step.seconds)}` }, step.name);
    node.style.flex = `${1000 * step.seconds / program.seconds} 0 0`;
    node.style.background = colour(i);
    $("bar").append(node);
    row(node, step.places, [i]);
  }
}

// ---- keys and mouse

function move(by) {
  const active = document.activeElement, inSource = $("source").contains(active) || (cursor && $("source").contains(cursor.node) && !$("panes").contains(active));
  const box = inSource ? $("source") : document.querySelector(".pane:not([hidden])");
  const list = rows.filter((r) => (r.p.length || r.s.length) && box.contains(r.node) && !r.node.ownerSVGElement);
  if (!list.length) return;
  let at = list.indexOf(cursor);
  if (at < 0) at = list.findIndex((r) => r.lit) - (by > 0 ? 1 : 0);
  choose(list[Math.min(Math.max(at + by, 0), list.length - 1)]);
}

function turn(by) {
  const all = [...$("tabs").children].map((tab) => tab.dataset.pane);
  open(all[(all.indexOf(pane) + by + all.length) % all.length], true);
}

function theme() {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

const KEYS = {
  "↓ j": ["the next line or step", () => move(1)], "↑ k": ["the one before", () => move(-1)],
  "← h": ["the view before", () => turn(-1)], "→ l": ["the next view", () => turn(1)],
  s: ["to the source", () => $("source").focus()], v: ["to the view", () => { const box = document.querySelector(".pane:not([hidden])"); box.tabIndex = 0; box.focus(); }],
  Enter: ["the steps of the function that is selected", () => cursor?.enter?.()], Escape: ["nothing selected", clear], t: ["dark or light", theme], "?": ["these keys", () => $("keys").showModal()],
};
const ARROWS = { ArrowDown: "↓ j", j: "↓ j", ArrowUp: "↑ k", k: "↑ k", ArrowLeft: "← h", h: "← h", ArrowRight: "→ l", l: "→ l" };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open || event.target.tagName === "SELECT") return;
  if (event.target.id === "divider" && event.key.startsWith("Arrow")) return;
  const digit = "1234567890".indexOf(event.key), key = KEYS[ARROWS[event.key] || event.key];
  if (event.key.length === 1 && digit >= 0) $("tabs").children[digit]?.click();
  else if (key && !(event.key === "Enter" && event.target.closest("button"))) key[1]();
  else return;
  event.preventDefault();
});

const widen = (x) => { $("left").style.width = `${Math.min(Math.max(x, 120), innerWidth - 220)}px`; };
$("divider").addEventListener("pointerdown", (event) => $("divider").setPointerCapture(event.pointerId));
$("divider").addEventListener("pointermove", (event) => $("divider").hasPointerCapture(event.pointerId) && widen(event.clientX));
$("divider").addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -24, ArrowRight: 24 }[event.key];
  if (by) widen($("left").getBoundingClientRect().width + by);
});
$("theme").addEventListener("click", theme);
$("help").addEventListener("click", () => $("keys").showModal());
$("keylist").append(...Object.entries(KEYS).flatMap(([key, [what]]) => [element("dt", {}, key), element("dd", {}, what)]),
  element("dt", {}, "1 2 3 …"), element("dd", {}, "a view"));
$("programs").append(...DATA.programs.map((p, i) => element("option", { value: String(i) }, p.name)));
$("programs").hidden = DATA.programs.length < 2;
$("programs").addEventListener("change", () => show(+$("programs").value, PANES[pane][2] ? "steps" : pane));
show(0);
