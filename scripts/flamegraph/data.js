"use strict";
// Holds what the page shows: it is in the page, or comes from the page's server. Names come from the profiled programs. They
// reach the page as text (textContent) alone; in the JSON "<" never appears, so no name can end its element.
const element = id => document.getElementById(id);
const COLUMNS = { i: Int32Array, d: Float64Array };
let data = JSON.parse(element("data").textContent);
const isServed = Boolean(data.is_served);

// Bounds labels of a file, which may have megabytes: in full they would block the page, and no reader needs them.
const MOST_LETTERS = 4000;
const shortened = text => typeof text === "string" && text.length > MOST_LETTERS ? text.slice(0, MOST_LETTERS) + "\u2026" : text;

function make(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = shortened(text);
  return made;
}

// Parses a server's data: the length of the JSON in 4 bytes, the JSON, and from the next multiple of 8 on columns of numbers.
// The JSON has {type, at, count} in place of each column.
function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const found = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const begin = Math.ceil((4 + length) / 8) * 8;
  for (const { tree, samples, stacks } of [found, ...found.profiles]) {
    for (const columns of [tree, samples, stacks]) {
      for (const [name, { type, at, count }] of Object.entries(columns ?? {})) columns[name] = new COLUMNS[type](buffer, begin + at, count);
    }
  }
  return found;
}

async function ask(what) {
  const answer = await fetch(what);
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
}

const fetchData = async (what = "data") => unpacked(await (await ask(what)).arrayBuffer());
