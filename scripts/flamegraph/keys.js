"use strict";
// Lists the keys of the page: one list for their actions and for the help that names them.
const KEYS = [
  ["?", "this help", () => element("help").open ? element("help").close() : element("help").showModal()],
  ["/", "search functions", () => { element("term").focus(); element("term").select(); }],
  ["n", "the next match", () => goToMatch(1)],
  ["N", "the previous match", () => goToMatch(-1)],
  ["g", "the graph", () => look()],
  ["f", "list functions", switchList],
  ["c", "callers and callees of a function", () => look(isOpen("sandwich-view") ? "" : "sandwich-view")],
  ["s", "source lines of a function", () => data.has_lines && look(isOpen("source-view") ? "" : "source-view")],
  ["b", "back to the function before", goBack],
  ["i", "hide or show idle threads", () => element("idle").hidden || element("idle").click()],
  ["r", "fold recursion", () => element("fold").hidden || element("fold").click()],
  ["u", "flames or icicles: the callers at the bottom or at the top", () => element("flip").click()],
  ["d", "dark or light", switchScheme],
  ["p", "pause or go on, where a program is followed", () => element("live").hidden || element("pause").hidden || element("pause").click()],
];
// keys that the browser's elements handle themselves
const OTHER_KEYS = [["1 to 9", "a kind of profile"], ["arrows", "go to a neighbour"], ["Enter", "zoom into a frame; the next match"], ["Esc", "zoom out; close"],
  ["Alt+click", "remove a stack; a right click offers all that a frame can do"]];

function listKeys() {
  const body = element("help").querySelector("tbody");
  for (const [key, what] of [...KEYS, ...OTHER_KEYS]) {
    const row = body.insertRow();
    row.insertCell().append(make("kbd", "", key));
    row.insertCell().textContent = what;
  }
}

const isTyping = event => ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);

function onPageKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && !element("help").open && graph.zoomed) choose(0);
  if (event.key.startsWith("Arrow") && event.target.node === undefined && !isTyping(event) && !element("help").open) return enterGraph(event);
  if (isTyping(event) || element("help").open && event.key !== "?") return;
  const act = KEYS.find(([key]) => key === event.key)?.[2] ?? actOfDigit(event.key);
  if (!act) return;
  event.preventDefault();
  act();
}

// Lets arrows move at once, wherever the focus was.
function enterGraph(event) {
  if (element("chart").hidden || !graph.drawn.size || event.target.closest?.(".menu, .sideways, #list")) return;
  event.preventDefault();
  graph.focusOn(graph.drawn.get(graph.zoomed));
}

function actOfDigit(key) {
  const button = key >= "1" && key <= "9" && element("profiles").children[key - 1];
  return button && !button.disabled ? () => button.click() : undefined;
}

function listenToKeys() {
  listKeys();
  document.addEventListener("keydown", onPageKey);
  element("keys").addEventListener("click", KEYS[0][2]);
  element("close").addEventListener("click", () => element("help").close());
}
