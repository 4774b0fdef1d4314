"use strict";
// What the page shows: it is in the page, or comes from the server that the page is from. Names come from the programs that
// were profiled. They reach the page as text (textContent) alone; in the JSON "<" never appears, so none can end its element.
const element = id => document.getElementById(id);
const COLUMNS = { i: Int32Array, d: Float64Array };
let data = JSON.parse(element("data").textContent);
const isServed = Boolean(data.is_served);

// A file may have labels of megabytes. In full they would hold the page up, and nobody reads them.
const MOST_LETTERS = 4000;
const shortened = text => typeof text === "string" && text.length > MOST_LETTERS ? text.slice(0, MOST_LETTERS) + "\u2026" : text;

function make(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = shortened(text);
  return made;
}

// From a server: the length of the JSON in 4 bytes, the JSON, and from the next multiple of 8 on columns of numbers. The JSON has
// {type, at, count} in place of each.
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
