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
// What a thread waits for, by the word of a wait: as common/wait_kinds.def has it.
const WAITED_FOR = {
  word: "meaning",
  lock: "a mutex, a read-write lock",
  cond: "a condition variable",
  sem: "a semaphore, or a barrier",
  futex: "a futex that the program waits for by itself: locks and channels of Rust, Go and C++20",
  sleep: "time, or a signal",
  poll: "any of several descriptors",
  net: "a socket: data, a connection, room to send",
  accept: "a client",
  io: "a file, a pipe, or another descriptor",
  sync: "data that goes to the disk",
  file_lock: "the lock of a file",
  process: "the end of a child process",
  thread: "the end of a thread",
  queue: "a message, or a semaphore of System V",
  memory: "a page of memory: a page fault",
  stopped: "nothing: the whole process was stopped (SIGSTOP, a frozen control group, a paused virtual machine)",
  other: "another system call",
};
const MEANINGS = {
  [ON_CPU]: "time in which a processor ran the threads",
  "run queue": "ready, and no processor was free",
  [IDLE]: "waiting for work, and hardly doing anything else",
  "not seen": "waits that began and ended between two polls of the thread: too short to be distinguished",
};
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

function meaningOf(word) {
  return MEANINGS[word] ?? "waiting for " + (Object.hasOwn(WAITED_FOR, word) ? WAITED_FOR[word] : word);
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
    addToLegend("colour", share(value) + " " + word, meaningOf(word), matches, value).style.background = fill(word);
  }
}
