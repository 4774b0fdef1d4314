"use strict";
// Formats numbers and names as `otelprof top` does.
let shown = null; // the profile on the page

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

const percent = part => (100 * part).toFixed(1) + "%";
const share = value => percent(value / (shown.total || 1));
const withShare = value => readable(value) + ", " + share(value);

// Returns whether a frame has its module's name, in brackets, because its code has none.
function isNameless(frame) {
  const [name, module] = data.frames[frame];
  return name === "[" + data.modules[module] + "]" || name.startsWith("[") && name === data.modules[module];
}

// `text`: the name as it is written, or whole.
function nameOf(frame, text = shortOf(frame)) {
  const [name, module] = data.frames[frame];
  const file = data.modules[module];
  const isTold = name.includes(" " + file + ":"); // with a line of that file
  return file && !isTold && !isNameless(frame) ? text + " (" + file + ")" : text;
}

// Returns a key that identifies a function in any data.
function keyOf(frame) {
  const [name, module] = data.frames[frame];
  return name + "\0" + data.modules[module] + "\0" + data.languages[data.spoken[frame]];
}
