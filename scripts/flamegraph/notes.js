"use strict";
// Explains a frame: the tooltip at the pointer, the footer, and what a mark such as [anonymous] stands for.
const NOTES = new Map(Object.entries({
  "[truncated]": "the callers are missing: the stack is deeper than OTEL_PROFILER_MAX_STACK_DEPTH (128 frames), or it goes through code that could not be unwound",
  "[anonymous]": "code in memory that belongs to no file: that of a JIT compiler. It has names if its runtime reports them: node --perf-basic-prof, for example (docs/interpreters.md)",
  "[unknown]": "an address in no file that the process had loaded",
  "[vdso]": "code of the kernel in the process: the clock, mostly",
  "[libotelprof]": "the profiler's own work in this process",
}));
const NO_LANGUAGE = /^\[no (.+)\]$/;

// Returns what a frame that is no function stands for; "" for a function.
function noteOf(frame) {
  const [name, module] = data.frames[frame];
  if (shown?.states?.[frame] === name) return meaningOf(name);
  if (NOTES.has(name)) return NOTES.get(name);
  const without = NO_LANGUAGE.exec(name);
  if (without) return "stacks without a function of " + without[1] + ": threads of libraries, or the start and the end of the process";
  if (!isNameless(frame)) return "";
  const file = data.modules[module];
  return "code of " + file + " that has no names: its debug symbols are not on the machine where it ran. " + (file.startsWith("libc.so") || file.startsWith("libm.so") || file.startsWith("ld-linux") ?
    "Debian and Ubuntu: apt install libc6-dbg" : "Install its package of debug symbols (-dbgsym, -debuginfo), or build it without strip");
}

// Returns [value, words] of a node: what it and what is below it accounts for.
function figuresOf(node) {
  const { values, own, objects, ownObjects } = shown;
  const found = [["total", withShare(values[node]) + (objects ? ", " + readableCount(objects[node]) + " " + shown.noun : "")]];
  if (own[node]) found.push(["self", withShare(own[node]) + (ownObjects ? ", " + readableCount(ownObjects[node]) + " " + shown.noun : "")]);
  if (shown.period) found.push(["samples", readableCount(Math.round(values[node] / shown.period))]);
  if (graph.zoomed) found.push(["of the zoom", percent(values[node] / (shown.values[graph.zoomed] || 1))]);
  return found;
}

function placeOf(frame) {
  const file = data.files?.[data.file_of[frame]] ?? "";
  return file && data.line_of[frame] ? file + ":" + data.line_of[frame] : file;
}

// --- the tooltip ---

const NEAR = 14; // pixels between the pointer and the tooltip
const MOST_IN_TIP = 1500; // letters of a name

function showTip(event, node) {
  const tip = element("tip"), frame = shown.frames[node];
  const name = nameOf(frame, data.frames[frame][0]);
  const lines = [make("strong", "", name.length > MOST_IN_TIP ? name.slice(0, MOST_IN_TIP) + "\u2026" : name)];
  const table = document.createElement("table");
  for (const [title, text] of [...figuresOf(node), ...moreOf(node), ...[["file", placeOf(frame)]].filter(([, place]) => place)]) {
    const row = table.insertRow();
    row.insertCell().textContent = title;
    row.insertCell().textContent = text;
  }
  lines.push(table);
  const note = node ? noteOf(frame) : "";
  if (note) lines.push(make("p", "", note));
  tip.replaceChildren(...lines);
  tip.hidden = false;
  moveTip(event);
}

function moreOf(node) {
  return [...(shown.states ? [["threads", describeStates(node)]] : []), ...(shown.changes ? [["changed", describeChange(node)]] : [])];
}

// Keeps the tooltip on the screen, beside the pointer.
function moveTip(event) {
  const tip = element("tip");
  const { width, height } = tip.getBoundingClientRect();
  const right = event.clientX + NEAR, below = event.clientY + NEAR;
  tip.style.left = Math.max(4, right + width > window.innerWidth ? Math.min(event.clientX - NEAR - width, window.innerWidth - width - 4) : right) + "px";
  tip.style.top = Math.max(4, below + height > window.innerHeight ? event.clientY - NEAR - height : below) + "px";
}

const hideTip = () => { element("tip").hidden = true; };

function listenToTip() {
  const place = element("chart");
  place.addEventListener("pointerover", event => { // a finger would cover the tooltip: there the footer has all
    if (event.target.node === undefined || event.pointerType === "touch") return hideTip();
    showTip(event, event.target.node);
  });
  place.addEventListener("pointermove", event => element("tip").hidden || moveTip(event));
  place.addEventListener("pointerleave", hideTip);
  place.addEventListener("click", hideTip);
  element("pane").addEventListener("scroll", hideTip);
}

// --- the footer ---

// Shows the value before the name: however long that is, the value can be read.
function describe(value, frame, note = noteOf(frame)) {
  const name = make("span", "", "");
  putName(name, frame);
  element("details").replaceChildren(make("span", "value", value), name);
  element("more-details").textContent = note;
}

function say(text, more = "") {
  element("details").textContent = text;
  element("more-details").textContent = more;
}

function tell(node) {
  const own = shown.own[node], frame = shown.frames[node];
  const parts = [shown.states ? describeStates(node) : "", shown.changes ? describeChange(node) : "", node ? noteOf(frame) : "", placeOf(frame)];
  describe(withShare(shown.values[node]) + (own ? "; self " + withShare(own) : ""), frame, parts.filter(Boolean).join("; "));
}
