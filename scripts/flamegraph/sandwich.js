"use strict";
// Shows one function with all its callers above, and all its callees below, wherever it is called.
let selected = null; // the function that was selected last; null: none
let visited = []; // the functions that were in the middle before

// Returns the nodes of a function, except those below another node of that function.
function occurrencesOf(frame) {
  const found = [];
  for (let node = 0; node < shown.frames.length;) {
    const isIt = shown.frames[node] === frame;
    if (isIt) found.push(node);
    node = isIt ? shown.end[node] : node + 1;
  }
  return found;
}

function calleesOf(frame, occurrences) {
  const tree = new Growing(frame);
  for (const top of occurrences) {
    const way = [0]; // the node made for each depth
    for (let node = top; node < shown.end[top]; node++) {
      const depth = shown.depths[node] - shown.depths[top];
      way.length = Math.max(1, depth);
      if (depth) way.push(tree.below(way[depth - 1], shown.frames[node]));
      tree.own[way[depth]] += shown.own[node];
    }
    // frames that are left out below
    if (shown.left_out) addUnseen(tree, top);
  }
  return laidOut(tree);
}

// Adds small frames that the graph's tree may lack, which count for their callers.
function addUnseen(tree, top) {
  let sum = 0;
  for (let node = top; node < shown.end[top]; node++) sum += shown.own[node];
  tree.own[0] += Math.max(0, shown.values[top] - sum);
}

function callersOf(frame, occurrences) {
  const tree = new Growing(frame);
  for (const top of occurrences) {
    let at = 0;
    for (let node = shown.parent[top]; node > 0; node = shown.parent[node]) at = tree.below(at, shown.frames[node]);
    tree.own[at] += shown.values[top];
  }
  return laidOut(tree);
}

const looksOf = chartOf => ({
  labelOf: node => shortOf(chartOf().tree.frames[node]) + (node ? "" : ": " + withShare(chartOf().tree.values[0])),
  foundOf: node => isFrameFound ? isFrameFound(chartOf().tree.frames[node]) : undefined,
  fillOf: () => "",
});

const callers = new Chart("callers", looksOf(() => callers), true);
const callees = new Chart("callees", looksOf(() => callees));

// Returns the function that was searched or selected, or the one with the largest self value.
const middle = () => selected ?? searched() ?? sortedFunctions()[0]?.[0] ?? shown.frames[0];

// Returns the function with the largest total of those that the search finds; undefined: there is no search.
function searched() {
  if (!isFrameFound) return undefined;
  return shown.functions.filter(([frame]) => isFrameFound(frame)).sort((a, b) => b[BY_TOTAL] - a[BY_TOTAL])[0]?.[0];
}

function tellCalls(chart, node) {
  const { frames, values, own } = chart.tree;
  const what = chart === callers ? " on behalf of this caller" : " below " + shortOf(frames[0]);
  const self = chart === callees && own[node] ? "; self " + withShare(own[node]) : "";
  describe(withShare(values[node]) + (node ? what : "") + self, frames[node]);
}

function describeMiddle(frame, occurrences) {
  const total = occurrences.reduce((sum, node) => sum + shown.values[node], 0);
  const own = callees.tree.frames.reduce((sum, it, node) => sum + (it === frame ? callees.tree.own[node] : 0), 0);
  return nameOf(frame) + ": " + withShare(total) + (shown.left_out ? "" : "; self " + withShare(own));
}

function showSandwich() {
  const frame = middle();
  const occurrences = occurrencesOf(frame);
  element("back").disabled = !visited.length;
  element("no-calls").hidden = occurrences.length > 0;
  element("calls").hidden = !occurrences.length;
  callees.tree = calleesOf(frame, occurrences);
  callers.tree = callersOf(frame, occurrences);
  element("middle").textContent = occurrences.length ? describeMiddle(frame, occurrences) : nameOf(frame);
  element("to-graph").hidden = element("to-source").hidden = !occurrences.length;
  element("to-source").hidden ||= !data.has_lines;
  if (!occurrences.length) return;
  callers.zoomTo(0);
  callees.zoomTo(0);
  element("no-callers").hidden = callers.tree.frames.length > 1;
}

function repaintSandwich() {
  if (!isOpen("sandwich-view")) return;
  callers.repaint();
  callees.repaint();
}

function openSandwich(frame) {
  if (isOpen("sandwich-view") && frame !== middle()) visited.push(middle());
  if (!isOpen("sandwich-view")) visited = [];
  selected = frame;
  look("sandwich-view");
}

function goBack() {
  if (!visited.length) return;
  selected = visited.pop();
  showSandwich();
}

function listenToSandwich() {
  for (const chart of [callers, callees]) {
    chart.listen(node => openSandwich(chart.tree.frames[node]), node => tellCalls(chart, node));
  }
  element("back").addEventListener("click", goBack);
  element("to-graph").addEventListener("click", () => searchName(middle()));
  element("to-source").addEventListener("click", () => openSource(middle()));
}
