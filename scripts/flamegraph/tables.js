"use strict";
// Shows functions, and locks or threads, as tables.
const MOST_FUNCTIONS = 500; // the most that are listed
const BY_SELF = 1;
const BY_TOTAL = 2;
let order = BY_SELF; // order of the list of functions: a column of its rows

function sortedFunctions() {
  const text = ([frame]) => data.frames[frame][0] + "\0" + data.modules[data.frames[frame][1]];
  const other = BY_SELF + BY_TOTAL - order;
  const rows = [...shown.functions];
  const isLess = (a, b, column) => Math.round(1e9 * b[column]) - Math.round(1e9 * a[column]); // sums differ by their order
  return rows.sort((a, b) => isLess(a, b, order) || isLess(a, b, other) || (text(a) < text(b) ? -1 : 1));
}

function titleOf(text, column) {
  const cell = make("th", "", column ? "" : text);
  if (!column) return cell;
  const button = make("button", "", text);
  button.type = "button";
  button.title = "the most of it first";
  cell.append(button);
  cell.ariaSort = column === order ? "descending" : "none";
  button.addEventListener("click", () => {
    order = column;
    showFunctions();
  });
  return cell;
}

function addFunction(body, [frame, own, total, ...counts]) {
  const row = body.insertRow();
  const cells = [readable(own), share(own), readable(total), share(total), ...counts.map(readableCount)];
  for (const cell of cells) row.insertCell().textContent = cell;
  // bars: the share of self in the first columns, of the total in the next
  [own, own, total, total].forEach((value, place) => row.cells[place].style.setProperty("--part", (100 * value / (shown.total || 1)).toFixed(2) + "%"));
  if (frame === picked) row.className = "picked";
  const around = make("button", "", "\u21c5");
  around.title = around.ariaLabel = "callers and callees of " + nameOf(frame);
  around.addEventListener("click", () => openSandwich(frame));
  row.insertCell().append(around);
  const name = make("button", "", "");
  putName(name, frame);
  name.title = nameOf(frame, data.frames[frame][0]).slice(0, MOST_LETTERS_DRAWN) + "\n(find it in the graph)";
  name.addEventListener("click", () => searchName(frame));
  row.insertCell().append(name);
}

// Says how many of the functions the list has: all, those that the search finds, or the first of many.
function count(rows, all) {
  const number = value => value.toLocaleString("en");
  const known = shown.left_out && !shown.whole ? "the " + number(all) + " largest functions" : number(all) + (all === 1 ? " function" : " functions");
  element("counted").textContent = rows === all ? known : number(rows) + " of " + known;
}

function showFunctions() {
  const objects = shown.functions.some(row => row.length > 3);
  const titles = [["self", BY_SELF], [""], ["total", BY_TOTAL], [""], ...(objects ? [[shown.noun], ["total"]] : []), [""], ["function"]];
  element("functions").tHead.rows[0].replaceChildren(...titles.map(title => titleOf(...title)));
  const body = element("functions").tBodies[0];
  body.replaceChildren();
  const rows = sortedFunctions();
  const found = isFrameFound && picked === null ? rows.filter(([frame]) => isFrameFound(frame)) : rows;
  count(Math.min(found.length, MOST_FUNCTIONS), rows.length);
  for (const row of found.slice(0, MOST_FUNCTIONS)) addFunction(body, row);
}

const FIGURE = /^(-|none|[+-]?[\d.,]+(e-\d+)?( ?[%\w\u00b5]{1,3})?)?$/; // 201, 49.1 ms, +6.4%, 4e-05

// Shows locks, or threads.
function showOther() {
  const name = shown.table;
  element("other-view").hidden = !name;
  element("other-view").textContent = name ? "list " + name : "";
  if (!name) return;
  const { rows: [titles, ...rows], idle, note } = data.tables[name];
  const [table] = element("other").getElementsByTagName("table");
  const classes = titles.map((_, column) => rows.every(cells => FIGURE.test(cells[column])) ? "figure" : "");
  table.tHead.rows[0].replaceChildren(...titles.map((title, column) => make("th", classes[column], title)));
  table.tBodies[0].replaceChildren();
  rows.forEach((cells, place) => {
    if (idle && isIdleHidden() && idle.includes(place + 1)) return;
    const row = table.tBodies[0].insertRow();
    row.append(...cells.map((cell, column) => make("td", classes[column], cell)));
  });
  element("note").textContent = note ?? "";
}

// --- what is in the page's middle ---

const VIEWS = { "other-view": "other", "sandwich-view": "sandwich", "source-view": "source" }; // button: the view that it shows
const WIDE = 1600; // pixels: the list is beside the graph from the beginning
const BESIDE = matchMedia("(min-width: 1000px)"); // as in page.css: the list is beside the graph, and not in its place
let isListWanted = null; // null: the reader has not chosen

const isOpen = view => !element(view === "view" ? "list" : VIEWS[view]).hidden;
const isListDefault = () => window.innerWidth >= WIDE;

function showList() {
  const isShown = Boolean(shown) && (isListWanted ?? isListDefault());
  element("list").hidden = !isShown;
  element("view").setAttribute("aria-pressed", isShown);
  document.querySelector("main").classList.toggle("lists", isShown);
  if (isShown) showFunctions();
}

// Shows a view. `view`: a key of VIEWS; otherwise the graph. A list that is in their place goes away.
function look(view) {
  for (const [button, part] of Object.entries(VIEWS)) {
    element(part).hidden = view !== button;
    element(button).setAttribute("aria-pressed", view === button);
  }
  element("chart").hidden = view in VIEWS;
  if (isListWanted && !BESIDE.matches) isListWanted = false;
  showList();
  redraw();
  writeState();
}

function switchList() {
  isListWanted = !isOpen("view");
  showList();
  redraw();
  writeState();
}

// Draws the visible view: a hidden chart has no width.
function redraw() {
  if (!shown) return;
  if (isOpen("sandwich-view")) showSandwich();
  if (isOpen("source-view")) showSource();
  if (!element("chart").hidden) zoomTo(graph.zoomed);
}

function listenToViews() {
  for (const button of Object.keys(VIEWS)) {
    element(button).addEventListener("click", () => look(isOpen(button) ? "" : button));
  }
  element("view").addEventListener("click", switchList);
}
