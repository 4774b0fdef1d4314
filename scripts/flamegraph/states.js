"use strict";
// Divides wall time by what the threads did. A stack that was not on a CPU ends in a frame with the reason; each
// frame is filled with the colours of all that is below it.
const ON_CPU = "on CPU";
const IDLE = "idle";
// states with a colour of their own, by families that differ: locks, threads' waits for each other, sockets, files, and the like.
// Words that are not listed are grey.
const FAMILIES = {
  running: [ON_CPU], ready: ["run queue"], locks: ["lock", "file_lock"], threads: ["cond", "sem", "futex", "thread", "queue"], polls: ["poll"],
  sockets: ["net", "accept"], files: ["io", "sync"], memory: ["memory"], sleep: ["sleep"], processes: ["process", "stopped"],
  idle: [IDLE], unknown: ["not seen"],
};
const COLOURED = new Set(Object.values(FAMILIES).flat());
const WAITS = ""; // all other words, the most first
const ORDER = [ON_CPU, "run queue", WAITS, "not seen", IDLE];
const MOST_DESCRIBED = 4; // states of a frame

// The colours are in page.css, for both schemes.
const fill = word => "var(--of-" + (COLOURED.has(word) ? word.toLowerCase().replace(/[ _]/g, "-") : "other") + ")";

// Returns the states of a profile in the order of its legend, and how much each node has of each: a row for a node.
function divide(profile) {
  const sums = new Map([[ON_CPU, 0]]);
  const wordOf = node => profile.states[profile.frames[node]] ?? ON_CPU;
  profile.own.forEach((own, node) => sums.set(wordOf(node), (sums.get(wordOf(node)) ?? 0) + own));
  const place = word => ORDER.includes(word) ? ORDER.indexOf(word) : ORDER.indexOf(WAITS);
  profile.words = [...sums.keys()].filter(word => sums.get(word)).sort((a, b) => place(a) - place(b) || sums.get(b) - sums.get(a));
  const width = profile.words.length;
  const columns = new Map(profile.words.map((word, column) => [word, column]));
  profile.parts = new Float64Array(profile.depths.length * width);
  for (let node = profile.depths.length - 1; node >= 0; node--) {
    if (profile.own[node]) profile.parts[node * width + columns.get(wordOf(node))] += profile.own[node];
    const parent = profile.parent[node];
    for (let column = 0; parent >= 0 && column < width; column++) {
      profile.parts[parent * width + column] += profile.parts[node * width + column];
    }
  }
}

// Returns [word, value] of each state that a node has.
function statesOf(node) {
  const width = shown.words.length;
  return shown.words.map((word, column) => [word, shown.parts[node * width + column]]).filter(([, value]) => value > 0);
}

// Returns the stripes of a node; frames that are not drawn have no known state: the last part stays grey.
function stripesOf(node) {
  let end = 0;
  const stripes = statesOf(node).map(([word, value]) => {
    const begin = end;
    end += 100 * value / shown.values[node];
    return fill(word) + " " + begin.toFixed(2) + "% " + end.toFixed(2) + "%";
  });
  return "linear-gradient(to right, " + [...stripes, fill("") + " " + end.toFixed(2) + "% 100%"].join(", ") + ")";
}

function describeStates(node) {
  const states = statesOf(node).sort((a, b) => b[1] - a[1]);
  return states.slice(0, MOST_DESCRIBED).map(([word, value]) => word + " " + (100 * value / shown.values[node]).toFixed(1) + "%").join(", ");
}

function showStates() {
  for (const [word, value] of statesOf(0)) {
    const isOfCpu = word === ON_CPU;
    const matches = node => (shown.states[shown.frames[node]] ?? ON_CPU) === word && (!isOfCpu || shown.own[node] > 0);
    const title = isOfCpu ? "time in which a processor ran the threads" : word === "run queue" ? "ready, and no processor was free" :
      word === IDLE ? "waiting for work, and hardly doing anything else" :
      word === "not seen" ? "waits that began and ended between two looks" : "waiting: " + word;
    addToLegend("colour", share(value) + " " + word, title, matches, value).style.background = fill(word);
  }
}
