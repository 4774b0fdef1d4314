"use strict";
// Names come from the programs that were profiled. They reach the page as text (textContent) alone; in the
// JSON "<" never appears, so none can end its element.
const data = JSON.parse(document.getElementById("data").textContent);
const element = id => document.getElementById(id);
const ROW = 20; // pixels
const NARROWEST = 1; // pixels: a frame narrower than that is not drawn, nor what it calls
const LABELLED = 28; // pixels that have room for a few letters
const OTHERS = 8; // the hue of what is in no module, or in one beyond the largest eight
let shown = null; // the profile
let zoomed = 0; // a node of it: an index into its lists, which hold the tree in preorder
let isFound = null; // tells whether a node is highlighted; null: no search
let drawn = new Map(); // node to its element

function make(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

// --- numbers, as `otelprof top` shows them ---

function prefixed(value, prefixes, step) {
  let i = 0;
  while (value >= step && i + 1 < prefixes.length) { value /= step; i++; }
  return [value, prefixes[i]];
}

function readableDuration(seconds) {
  const fitting = [[1, " s"], [1e3, " ms"]].find(([factor]) => seconds * factor >= 1);
  const [factor, unit] = fitting ?? [1e6, " us"];
  return (seconds * factor).toFixed(1) + unit;
}

function readable(value, unit = shown.unit) {
  if (unit === "seconds") return value.toFixed(3) + " s";
  if (unit === "duration") return readableDuration(value);
  if (unit === "count") return readableCount(value);
  const [short, prefix] = prefixed(value, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
  return short.toFixed(1) + " " + prefix;
}

function readableCount(value) {
  const [short, prefix] = prefixed(value, ["", "k", "M", "G", "T"], 1000);
  return prefix ? short.toFixed(1) + prefix : String(value);
}

const share = value => (100 * value / (shown.total || 1)).toFixed(1) + "%";
const withShare = value => readable(value) + ", " + share(value);

// Of code that has no name, a frame has its module's, in brackets.
function isNameless(frame) {
  const [name, module] = data.frames[frame];
  return name === "[" + data.modules[module] + "]" || name.startsWith("[") && name === data.modules[module];
}

function nameOf(frame) {
  const [name, module] = data.frames[frame];
  const file = data.modules[module];
  const isTold = name.includes(" " + file + ":"); // with a line of it
  return file && !isTold && !isNameless(frame) ? name + " (" + file + ")" : name;
}

// --- the tree ---

// Where each node begins, what calls it, and where the nodes below it end.
function layOut(profile) {
  const count = profile.depths.length;
  profile.left = new Float64Array(count);
  profile.parent = new Int32Array(count);
  profile.end = new Int32Array(count).fill(count);
  const open = []; // the node at each depth
  const next = [0]; // where the next node of each depth begins
  for (let node = 0; node < count; node++) {
    const depth = profile.depths[node];
    while (open.length > depth) profile.end[open.pop()] = node;
    profile.parent[node] = depth ? open[depth - 1] : -1;
    profile.left[node] = next[depth];
    next[depth] += profile.values[node];
    next[depth + 1] = profile.left[node];
    open.push(node);
  }
}

// --- the flame graph ---

const hueOf = module => data.modules[module] === "" ? OTHERS : Math.min(module, OTHERS);

function colourOf(node) {
  if (isFound) return isFound(node) ? "found" : "dim";
  if (shown.states || shown.changes) return "colour";
  const frame = shown.frames[node];
  const [name, module] = data.frames[frame];
  const hue = areLanguagesColoured() ? "" : " module" + hueOf(module);
  return "colour " + (name.startsWith("[") ? "nameless" : "shade" + frame % 3) + hue;
}

// What fills a node: of wall time how its time went, of two profiles how they differ.
function fillOf(node) {
  if (isFound) return "";
  return shown.states ? stripesOf(node) : shown.changes ? fillOfChange(node) : "";
}

function paint(box, node, hasRoom) {
  box.className = "frame " + (hasRoom ? "label " : "") + colourOf(node);
  box.style.background = fillOf(node);
  if (areLanguagesColoured()) setHue(box, typeOf(node)); else clearHue(box);
}

function addFrame(pieces, node, left, width, pixels) {
  const frame = shown.frames[node];
  const label = node === 0 ? "all (" + shown.headline + ")" : data.frames[frame][0];
  const box = make("div", "", pixels < LABELLED ? "" : label);
  paint(box, node, pixels >= LABELLED);
  box.style.left = 100 * left + "%";
  box.style.width = 100 * width + "%";
  box.style.top = ROW * shown.depths[node] + "px";
  box.tabIndex = node === zoomed ? 0 : -1;
  box.setAttribute("role", "treeitem");
  box.setAttribute("aria-level", shown.depths[node] + 1);
  box.setAttribute("aria-label", nameOf(frame) + ", " + withShare(shown.values[node]));
  box.node = node;
  drawn.set(node, box);
  pieces.append(box);
}

function draw() {
  const chart = element("chart");
  const pieces = document.createDocumentFragment();
  const all = shown.values[zoomed];
  const smallest = all * NARROWEST / Math.max(1, chart.clientWidth);
  const focused = document.activeElement.node;
  let deepest = shown.depths[zoomed];
  drawn = new Map();
  for (let node = shown.parent[zoomed]; node >= 0; node = shown.parent[node]) addFrame(pieces, node, 0, 1, LABELLED);
  for (let node = zoomed; node < shown.end[zoomed];) {
    if (shown.values[node] < smallest) { node = shown.end[node]; continue; }
    const width = shown.values[node] / all;
    addFrame(pieces, node, (shown.left[node] - shown.left[zoomed]) / all, width, width * chart.clientWidth);
    deepest = Math.max(deepest, shown.depths[node]);
    node++;
  }
  chart.replaceChildren(pieces);
  chart.style.height = ROW * (deepest + 1) + "px";
  element("reset").disabled = zoomed === 0;
  if (focused !== undefined) focusOn(drawn.get(focused) || drawn.get(zoomed));
}

function zoomTo(node) {
  zoomed = node;
  draw();
}

function tell(node) {
  const own = shown.own[node];
  element("details").textContent = nameOf(shown.frames[node]) + ": " + withShare(shown.values[node]) +
      (own ? "; self " + withShare(own) : "") + (shown.states ? "; " + describeStates(node) : "") +
      (shown.changes ? "; " + describeChange(node) : "") + (isNameless(shown.frames[node]) ? "; code that the file has no names for" : "");
}

// The neighbour in the direction of a key; undefined where there is none.
function neighbour(node, key) {
  const { depths, parent, end } = shown;
  let next = -1;
  if (key === "ArrowUp") next = parent[node];
  if (key === "ArrowDown") next = node + 1 < end[node] ? node + 1 : -1;
  if (key === "ArrowRight") next = end[node];
  if (key === "ArrowLeft") for (next = node - 1; depths[next] > depths[node];) next = parent[next];
  const isSibling = depths[next] === depths[node] && parent[next] === parent[node];
  return key === "ArrowUp" || key === "ArrowDown" || isSibling ? drawn.get(next) : undefined;
}

function focusOn(box) {
  for (const other of element("chart").querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
  box.tabIndex = 0;
  box.focus();
}

function onKey(event) {
  const node = event.target.node;
  if (node === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  const next = neighbour(node, event.key);
  if (next) {
    focusOn(next);
  } else if (event.key === "Enter" || event.key === " ") {
    zoomTo(node);
  } else if (!event.key.startsWith("Arrow")) {
    return;
  }
  event.preventDefault(); // arrows and space would scroll
}

// --- search ---

// `sum`: of what matches, where it is not all that the matching nodes have.
function highlight(matches, sum = sumOf(matches)) {
  isFound = matches;
  element("found").textContent = isFound ? "found: " + (shown.left_out ? "at least " : "") + withShare(sum) : "";
  for (const [node, box] of drawn) paint(box, node, box.textContent !== "");
}

function sumOf(matches) {
  let sum = 0;
  for (let node = 0; matches && node < shown.frames.length;) {
    const hit = matches(node);
    if (hit) sum += shown.values[node];
    node = hit ? shown.end[node] : node + 1; // what a function calls is in its value already
  }
  return sum;
}

// Not an expression: C++ names are full of their special characters.
function search() {
  const term = element("term").value.toLowerCase();
  const hits = data.frames.map(([name]) => term !== "" && name.toLowerCase().includes(term));
  for (const button of element("legend").children) button.setAttribute("aria-pressed", false);
  highlight(term ? node => hits[shown.frames[node]] : null);
}

// A button of the legend, and the nodes that it stands for.
function press(button, matches, sum) {
  const isPressed = button.getAttribute("aria-pressed") === "false";
  element("term").value = "";
  search();
  button.setAttribute("aria-pressed", isPressed);
  if (isPressed) highlight(matches, sum);
}

// --- what is around it ---

function addToLegend(className, text, title, matches, sum) {
  const button = make("button", className, text);
  button.type = "button";
  button.title = title;
  button.setAttribute("aria-pressed", false);
  button.addEventListener("click", () => press(button, matches, sum));
  element("legend").append(button);
  return button;
}

function showModules() {
  const own = new Array(OTHERS + 1).fill(0);
  shown.modules.forEach((value, module) => { own[hueOf(module)] += value; });
  const order = hue => hue === OTHERS ? -1 : own[hue];
  const hueOfNode = node => hueOf(data.frames[shown.frames[node]][1]);
  const hues = new Set(shown.frames.slice(1).map(frame => hueOf(data.frames[frame][1])));
  for (const hue of [...hues].sort((a, b) => order(b) - order(a) || a - b)) {
    const module = hue === OTHERS ? "others" : data.modules[hue];
    addToLegend("colour module" + hue, share(own[hue]) + " " + module, "self, of all code in " + module, node => hueOfNode(node) === hue);
  }
}

function showLegend() {
  element("legend").replaceChildren();
  const legends = [[shown.states, "states of threads", showStates], [shown.changes, "changes", showChanges],
    [areLanguagesColoured(), "languages", showLanguages], [true, "modules", showModules]];
  const [, title, fill] = legends.find(([isIt]) => isIt);
  element("legend").setAttribute("aria-label", title);
  offerColours();
  fill();
}

function searchName(frame) {
  element("term").value = data.frames[frame][0];
  look();
  search();
}

function showFunctions() {
  const objects = shown.functions.some(row => row.length > 3);
  const titles = ["self", "", "total", "", ...(objects ? [shown.noun, "total"] : []), "function"];
  const body = element("functions").tBodies[0];
  element("functions").tHead.rows[0].replaceChildren(...titles.map(title => make("th", "", title)));
  body.replaceChildren();
  for (const [frame, own, total, ...counts] of shown.functions) {
    const row = body.insertRow();
    const cells = [readable(own), share(own), readable(total), share(total), ...counts.map(readableCount)];
    for (const cell of cells) row.insertCell().textContent = cell;
    const name = make("button", "", nameOf(frame));
    name.addEventListener("click", () => searchName(frame));
    row.insertCell().append(name);
  }
}

// Locks, or threads: what is better read as a table.
function showOther() {
  const name = shown.table;
  element("other-view").hidden = !name;
  element("other-view").textContent = name ? "list " + name : "";
  if (!name) return;
  const { rows: [titles, ...rows], idle, note } = data.tables[name];
  const [table] = element("other").getElementsByTagName("table");
  table.tHead.rows[0].replaceChildren(...titles.map(title => make("th", "", title)));
  table.tBodies[0].replaceChildren();
  rows.forEach((cells, place) => {
    if (idle && isIdleHidden() && idle.includes(place + 1)) return;
    const row = table.tBodies[0].insertRow();
    for (const cell of cells) row.insertCell().textContent = cell;
  });
  element("note").textContent = note ?? "";
}

const VIEWS = { view: "functions", "other-view": "other" }; // button: what it shows in place of the graph

// `view`: a key of VIEWS; otherwise the graph.
function look(view) {
  for (const [button, part] of Object.entries(VIEWS)) {
    element(part).hidden = view !== button;
    element(button).setAttribute("aria-pressed", view === button);
  }
  element("chart").hidden = view in VIEWS;
  draw(); // hidden, the chart had no width
}

function show(profile) {
  shown = profile;
  if (!shown.left) layOut(shown);
  if (shown.states && !shown.parts) divide(shown);
  shown.types ??= typesOf(shown);
  for (const button of element("profiles").children) button.setAttribute("aria-pressed", button.profile === shown);
  element("left-out").textContent = shown.left_out ? "The " + shown.left_out + " smallest frames are left out." : "";
  element("of-states").hidden = !shown.states;
  element("of-changes").hidden = !shown.changes;
  element("details").textContent = shown.headline;
  showLegend();
  showFunctions();
  showOther();
  if (!shown.table && !element("other").hidden) look();
  zoomTo(0);
  search();
}

// --- start ---

function addProfile(profile) {
  const button = make("button", "", profile.headline);
  button.type = "button";
  button.profile = profile;
  button.disabled = !profile.total;
  button.addEventListener("click", () => show(profile));
  element("profiles").append(button);
}

function showProfiles(first) {
  element("profiles").replaceChildren();
  data.profiles.forEach(addProfile);
  show(first);
}

function listen() {
  const chart = element("chart");
  const withNode = act => event => event.target.node !== undefined && act(event.target.node);
  chart.addEventListener("click", withNode(zoomTo));
  chart.addEventListener("mouseover", withNode(tell));
  chart.addEventListener("focusin", withNode(tell));
  chart.addEventListener("keydown", onKey);
  element("term").addEventListener("input", search);
  element("reset").addEventListener("click", () => zoomTo(0));
  element("colours").addEventListener("click", switchColours);
  for (const [button, part] of Object.entries(VIEWS)) {
    element(button).addEventListener("click", () => look(element(part).hidden ? button : ""));
  }
  window.addEventListener("resize", () => element("chart").hidden || draw());
  document.addEventListener("keydown", event => {
    if (event.key === "Escape" && zoomed) zoomTo(0);
    if (event.key === "/" && event.target.tagName !== "INPUT") {
      event.preventDefault();
      element("term").focus();
    }
  });
}

element("title").textContent = element("title").title = data.title;
if (data.profiles.length) {
  listen();
  startFilter();
  showProfiles(data.profiles[0]);
} else {
  for (const id of ["tools", "filter", "colouring", "hint"]) element(id).hidden = true;
  element("chart").textContent = "no samples";
  element("details").textContent = "A program that used next to no CPU time and memory, or that is excluded, leaves none.";
}
