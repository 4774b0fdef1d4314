"use strict";
// Shortens names as people write them (scripts/otelprof_lib/names.py does the same for tables): the library's own spelling
// of std::string, default arguments of containers, long lists of arguments. The tooltip has the whole name.
const MOST_IN_BRACKETS = 40; // letters of template arguments, or of a function's, that are written out
const SHORT_NAME = 40; // letters: a name that is no longer is left as it is
const INLINE_NAMESPACES = /\bstd::(?:__cxx11|__1|__ndk1)::/g;
const DEFAULTS = [", std::allocator<", ", std::less<", ", std::hash<", ", std::equal_to<", ", std::default_delete<", ", std::char_traits<"];
const OF_LETTERS = /\bstd::basic_(\w+)<(char|wchar_t)>/g;
const CLOSING = { "<": ">", "(": ")" };

// Returns the place of the closing bracket by that of the opening one. One pass: a stranger's name may be brackets alone.
function closingsOf(text) {
  const open = { ">": [], ")": [] };
  const closings = new Map();
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (letter in CLOSING) open[CLOSING[letter]].push(at);
    else if (letter in open && !"-=".includes(text[at - 1] || " ") && open[letter].length) closings.set(open[letter].pop(), at);
  }
  return closings;
}

// Takes an argument that begins with these words away, wherever it stands.
function withoutArgument(text, begin) {
  if (!text.includes(begin)) return text;
  const pieces = [];
  const closings = closingsOf(text);
  let from = 0;
  for (let at; (at = text.indexOf(begin, from)) >= 0;) {
    const end = closings.get(at + begin.length - 1);
    if (end === undefined) break;
    pieces.push(text.slice(from, at));
    from = end + 1;
  }
  return pieces.join("") + text.slice(from);
}

// Returns whether a bracket belongs to an operator's name: operator<, operator<<, operator(), operator->.
const isOfOperator = (text, at) => /operator *[<(-]*$/.test(text.slice(Math.max(0, at - 12), at));

// Folds the outermost brackets that hold more than `most` letters: wrapper<…>::apply.
function folded(text, most) {
  const pieces = [];
  const closings = closingsOf(text);
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const end = closings.get(at);
    if (end === undefined || isOfOperator(text, at)) continue;
    if (end - at - 1 > most) {
      pieces.push(text.slice(from, at + 1), "\u2026");
      from = end;
    }
    at = end;
  }
  return pieces.join("") + text.slice(from);
}

function shortName(name) {
  if (name.length <= SHORT_NAME && !name.includes("std::__")) return name;
  let text = name.replace(INLINE_NAMESPACES, "std::");
  for (const begin of DEFAULTS) text = withoutArgument(text, begin);
  text = text.replace(/ +>/g, ">").replace(OF_LETTERS, (_, type, letter) => "std::" + (letter === "char" ? "" : "w") + type);
  return folded(text, MOST_IN_BRACKETS);
}

// Returns the name of a frame as it is written everywhere but in the tooltip.
function shortOf(frame) {
  data.short ??= [];
  return data.short[frame] ??= shortName(data.frames[frame][0]);
}

// --- what fits ---

const ruler = document.createElement("canvas").getContext("2d");
ruler.font = "12px system-ui, sans-serif"; // as in page.css
const letterWidths = new Map();

function widthOf(text) {
  let sum = 0;
  for (const letter of text) {
    let width = letterWidths.get(letter);
    if (width === undefined) letterWidths.set(letter, width = ruler.measureText(letter).width);
    sum += width;
  }
  return sum;
}

// Cuts a text in the middle where it is wider than its place: the end of a name says more than its middle.
function fitted(text, pixels) {
  if (text.length * 12 <= pixels || widthOf(text) <= pixels) return text;
  const most = Math.max(1, Math.floor(text.length * pixels / widthOf(text)) - 1);
  const head = Math.ceil(most * 0.4);
  return most < 8 ? text : text.slice(0, head).replace(/\u2026.?$/, "") + "\u2026" + text.slice(text.length - (most - head)).replace(/^.?\u2026/, "");
}

// Fills a box with a text that its style cuts in the middle, however wide it becomes.
const TAIL = 14; // letters that stay
function putName(box, frame) {
  const text = shortOf(frame);
  const cut = text.length > 2 * TAIL ? text.length - TAIL : text.length;
  const file = nameOf(frame).slice(text.length);
  const name = make("span", "function", "");
  name.append(make("span", "head", text.slice(0, cut)), make("span", "tail", text.slice(cut)));
  box.replaceChildren(name, make("span", "file", file));
  box.classList.add("cut");
}
