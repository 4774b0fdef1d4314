"use strict";
// Highlights functions with a term in their names, one function that was picked, or what a button of the legend names.
const MOST_TESTED = 4000; // letters of a name that an expression is compared with
let isFound = null; // returns whether a node of the graph matches; null: nothing is highlighted
let isFrameFound = null; // returns whether a function matches; null: no term
let picked = null; // the function that was picked in place of a term; null: none
let matches = []; // the outermost nodes that match, in preorder
let matchAt = -1; // the match that the reader went to; -1: none
let wantsExpression = false; // the term is a regular expression

// `sum`: the value of the matching part, where it is not all that the matching nodes have.
function highlight(matcher, sum = null) {
  isFound = matcher;
  matches = outermost(matcher);
  matchAt = -1;
  const all = sum ?? matches.reduce((all, node) => all + shown.values[node], 0); // a function's value already has its callees
  element("found").textContent = isFound ? "found: " + (shown.left_out ? "at least " : "") + withShare(all) : "";
  showMatch();
  graph.repaint();
}

function outermost(matcher) {
  const found = [];
  for (let node = 0; matcher && node < shown.frames.length;) {
    const hit = matcher(node);
    if (hit) found.push(node);
    node = hit ? shown.end[node] : node + 1;
  }
  return found;
}

// Returns a test of names for what is typed; null: nothing is; a text: why it is no expression. Plain text by default: C++
// names are full of special characters.
function testOfNames() {
  const term = element("term").value;
  if (!term) return null;
  if (!wantsExpression) {
    const lower = term.toLowerCase();
    return name => name.toLowerCase().includes(lower);
  }
  try {
    const expression = new RegExp(term, "i");
    return name => expression.test(name.slice(0, MOST_TESTED));
  } catch (error) {
    return error.message;
  }
}

// Finds what is typed. What was picked stays so only until then.
function search() {
  const test = testOfNames();
  if (test) picked = null;
  for (const button of element("legend").children) button.setAttribute("aria-pressed", false);
  if (typeof test === "function") {
    const hits = data.frames.map(([name], frame) => test(name) || test(shortOf(frame)));
    isFrameFound = frame => hits[frame];
  } else {
    isFrameFound = picked === null ? null : frame => frame === picked;
  }
  highlight(isFrameFound && (node => isFrameFound(shown.frames[node])));
  if (typeof test === "string") element("found").textContent = test;
  if (isOpen("view")) showFunctions();
  repaintSandwich();
}

function searchTyped() {
  search();
  writeState();
}

// Marks one function in the graph. It becomes the one whose callers and callees are asked for.
function searchName(frame) {
  picked = selected = frame;
  element("term").value = "";
  look();
  search();
  writeState(true);
}

// --- one match after the other ---

function showMatch() {
  element("match").textContent = !isFound || !matches.length ? "" : matchAt < 0 ? matches.length.toLocaleString("en") + (matches.length > 1 ? " matches" : " match") :
    (matchAt + 1).toLocaleString("en") + " of " + matches.length.toLocaleString("en");
  for (const id of ["previous", "next"]) element(id).hidden = !isFound || !matches.length;
}

const LEAST_SHOWN = 40; // pixels of a match that the reader goes to

// Returns the widest caller in which a node is wide enough to read; the zoom stays if it is.
function zoomThatShows(node) {
  const width = element("chart").clientWidth;
  const isWide = top => shown.values[node] / (shown.values[top] || 1) * width >= LEAST_SHOWN;
  const isInside = top => top <= node && node < shown.end[top];
  if (isInside(graph.zoomed) && (isWide(graph.zoomed) || graph.zoomed === node)) return graph.zoomed;
  let top = node;
  while (shown.parent[top] >= 0 && isWide(shown.parent[top])) top = shown.parent[top];
  return top;
}

function goToMatch(step) {
  if (!isFound || !matches.length) return;
  matchAt = matchAt < 0 ? (step > 0 ? 0 : matches.length - 1) : (matchAt + step + matches.length) % matches.length;
  const node = matches[matchAt];
  if (element("chart").hidden) look();
  zoomTo(zoomThatShows(node));
  const box = graph.drawn.get(node);
  box?.classList.add("current");
  box?.scrollIntoView({ block: "nearest", inline: "nearest" });
  tell(node);
  showMatch();
  writeState();
}

function listenToSearch() {
  element("term").addEventListener("input", () => {
    if (!element("term").value) picked = null;
    searchTyped();
  });
  element("term").addEventListener("keydown", event => {
    if (event.key === "Enter") goToMatch(event.shiftKey ? -1 : 1);
  });
  element("next").addEventListener("click", () => goToMatch(1));
  element("previous").addEventListener("click", () => goToMatch(-1));
  element("expression").addEventListener("click", () => {
    wantsExpression = !wantsExpression;
    element("expression").setAttribute("aria-pressed", wantsExpression);
    searchTyped();
  });
}
