"use strict";
// Highlights functions with a term in their names, or what a button of the legend names.
let isFound = null; // returns whether a node of the graph matches; null: nothing is highlighted
let isFrameFound = null; // returns whether a function matches; null: no term

// `sum`: the value of the matching part, where it is not all that the matching nodes have.
function highlight(matches, sum = sumOf(matches)) {
  isFound = matches;
  element("found").textContent = isFound ? "found: " + (shown.left_out ? "at least " : "") + withShare(sum) : "";
  graph.repaint();
}

function sumOf(matches) {
  let sum = 0;
  for (let node = 0; matches && node < shown.frames.length;) {
    const hit = matches(node);
    if (hit) sum += shown.values[node];
    node = hit ? shown.end[node] : node + 1; // a function's value already has its callees
  }
  return sum;
}

// Searches for plain text, not an expression: C++ names are full of special characters.
function search() {
  const term = element("term").value.toLowerCase();
  const hits = data.frames.map(([name]) => term !== "" && name.toLowerCase().includes(term));
  for (const button of element("legend").children) button.setAttribute("aria-pressed", false);
  isFrameFound = term ? frame => hits[frame] : null;
  highlight(term ? node => hits[shown.frames[node]] : null);
  repaintSandwich();
}

function searchName(frame) {
  element("term").value = data.frames[frame][0];
  look();
  search();
}
