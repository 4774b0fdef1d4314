"use strict";
// Makes other trees of a profile's: functions of one language alone, recursion folded, stacks taken away. Each change gets
// and returns columns (parents, frames, own, and the like), every node after its caller.
const COMPILED = ["", "native", "kernel", "go", "rust"]; // no interpreter is between such a function and its callees
let onlyLanguage = ""; // the type of the functions that are shown; "": all
let isFolded = false; // a function that calls itself is one frame
let removed = []; // {kind, path} of each stack that was taken away: the frames from the root

const SUMMED = ["own", "unseen", "objects", "unseenObjects"];

// Returns the columns of a tree whose nodes are those that `placeOf` gives for each node of the old tree.
function regrown(columns, tree, places) {
  const made = { parents: tree.parents, frames: tree.frames };
  for (const name of SUMMED) {
    if (!columns[name]) continue;
    made[name] = new Float64Array(tree.frames.length);
    for (let node = 0; node < places.length; node++) made[name][places[node]] += columns[name][node];
  }
  return made;
}

// Returns the frame for stacks that have no function of a language.
function frameWithout(type) {
  const name = "[no " + languageName(type) + "]";
  const known = data.frames.findIndex(([text]) => text === name);
  if (known >= 0) return known;
  data.frames.push([name, data.modules.indexOf("")]);
  data.spoken.push(data.languages.indexOf(""));
  data.file_of?.push(0);
  data.ranks = null;
  return data.frames.length - 1;
}

// Keeps functions of one language: what they call counts for them. States of threads stay.
function ofLanguage(columns, type, states) {
  const { parents, frames } = columns;
  const place = data.languages.indexOf(type);
  const without = frameWithout(type);
  const tree = new Growing(frames[0]);
  const places = new Int32Array(parents.length);
  const sums = SUMMED.filter(name => columns[name]);
  for (let node = 1; node < parents.length; node++) {
    const caller = places[parents[node]];
    const isState = states?.[frames[node]] !== undefined;
    const isKept = data.spoken[frames[node]] === place;
    if (isKept) places[node] = tree.below(caller, frames[node]);
    else if (isState) places[node] = tree.below(caller || tree.below(0, without), frames[node]);
    else places[node] = caller;
  }
  for (let node = 0; node < parents.length; node++) {
    if (!places[node] && sums.some(name => columns[name][node])) places[node] = tree.below(0, without);
  }
  return regrown(columns, tree, places);
}

// Puts a function that calls itself into one frame; `folds` counts the frames of the deepest.
function withoutRecursion(columns) {
  const { parents, frames } = columns;
  const tree = new Growing(frames[0]);
  const places = new Int32Array(parents.length);
  const runs = new Int32Array(parents.length).fill(1);
  const folds = [1];
  for (let node = 1; node < parents.length; node++) {
    const isAgain = parents[node] > 0 && frames[parents[node]] === frames[node];
    runs[node] = isAgain ? runs[parents[node]] + 1 : 1;
    places[node] = isAgain ? places[parents[node]] : tree.below(places[parents[node]], frames[node]);
    folds[places[node]] = Math.max(folds[places[node]] ?? 1, runs[node]);
  }
  return { ...regrown(columns, tree, places), folds };
}

// Takes away what is below a path of frames.
function withoutPath(columns, path) {
  const { parents, frames } = columns;
  const depths = new Int32Array(parents.length).fill(-1); // how much of the path a node has followed
  depths[0] = 0;
  const kept = { ...columns };
  for (const name of SUMMED) if (columns[name]) kept[name] = Float64Array.from(columns[name]);
  for (let node = 1; node < parents.length; node++) {
    const before = depths[parents[node]];
    if (before < 0) continue;
    if (before === path.length || frames[node] === path[before]) depths[node] = Math.min(path.length, before + 1);
    if (depths[node] === path.length) for (const name of SUMMED) if (kept[name]) kept[name][node] = 0;
  }
  return kept;
}

const isDerived = kind => onlyLanguage !== "" || isFolded || removed.some(it => it.kind === kind);

// Returns the columns as the reader wants them.
function derived(columns, { kind, states }) {
  let made = columns;
  if (onlyLanguage && data.languages.includes(onlyLanguage)) made = ofLanguage(made, onlyLanguage, states);
  if (isFolded) made = withoutRecursion(made);
  for (const { path } of removed.filter(it => it.kind === kind)) {
    made = withoutPath(made, path.map(key => typeof key === "number" ? key : frameOf(key)));
  }
  return made;
}

// --- the controls ---

const wholePath = node => {
  const path = [];
  for (; node > 0; node = shown.parent[node]) path.unshift(keyOf(shown.frames[node]));
  return path;
};

function removeStack(node) {
  if (!node || shown.changes) return;
  removed.push({ kind: shown.kind, path: wholePath(node) });
  filter();
}

function putBack() {
  removed = [];
  filter();
}

function setLanguage(type) {
  onlyLanguage = type;
  removed = [];
  filter();
}

// Returns the interpreted language that most of the profiles' code is in; "": none, or nothing else is there.
function interpretedLanguage() {
  const sums = new Map();
  for (const profile of whole) profile.languages.forEach((_, place) => sums.set(data.languages[place], 0));
  data.spoken.forEach(place => sums.set(data.languages[place], (sums.get(data.languages[place]) ?? 0) + 1));
  const found = [...sums].filter(([type, count]) => count && !COMPILED.includes(type)).sort((a, b) => b[1] - a[1]);
  const others = [...sums].filter(([type, count]) => count && type !== found[0]?.[0] && type !== "");
  return found.length && others.length ? found[0][0] : "";
}

function showDerived() {
  const type = onlyLanguage || interpretedLanguage();
  const isDifference = Boolean(shown.changes);
  element("only").hidden = !type || isDifference;
  if (type) element("only").textContent = languageName(type) + " only";
  element("only").title = "functions of this language alone: what they call counts for them";
  element("only").setAttribute("aria-pressed", onlyLanguage !== "");
  element("fold").hidden = isDifference;
  element("fold").setAttribute("aria-pressed", isFolded);
  element("put-back").hidden = !removed.length;
  element("put-back").textContent = "put back " + removed.length + " removed";
}

function listenToDerived() {
  element("only").addEventListener("click", () => setLanguage(onlyLanguage ? "" : interpretedLanguage()));
  element("fold").addEventListener("click", () => {
    isFolded = !isFolded;
    removed = [];
    filter();
  });
  element("put-back").addEventListener("click", putBack);
}
