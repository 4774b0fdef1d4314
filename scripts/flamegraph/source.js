"use strict";
// Shows the lines of a function, and what each accounts for. Only a server has them; requests name them by numbers, never
// by a path.
let latest = 0; // the number of the latest request: earlier responses come too late

// Returns the selected labels, as indices into the data: [set, pair] of each.
function chosenPlaces() {
  const typed = labelOf(element("key").value, element("value").value);
  const pairs = [...chosenPairs(), ...(element("value").value && Array.isArray(typed) ? [typed] : [])];
  return pairs.map(([name, value]) => {
    const set = sets.findIndex(it => it.get(name) === value);
    return set + "." + data.labels[set].findIndex(pair => pair[0] === name && pair[1] === value);
  });
}

function lineRow({ number, self, total, text }) {
  const row = document.createElement("tr");
  row.className = total ? "hit" : "";
  const cells = [number, self ? readable(self) : "", self ? share(self) : "", total ? readable(total) : "", total ? share(total) : ""];
  for (const cell of cells) row.insertCell().textContent = cell;
  const code = row.insertCell();
  code.append(make("code", "", text ?? ""));
  code.style.setProperty("--part", Math.min(100, 100 * total / (shown.total || 1)).toFixed(2) + "%");
  return row;
}

function showFile({ path, note, lines }) {
  const part = document.createElement("section");
  part.append(make("h3", "", path), make("p", "note", note));
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const title of ["line", "self", "", "total", "", ""]) head.append(make("th", "", title));
  const body = table.createTBody();
  body.append(...lines.map(lineRow));
  part.append(table);
  return part;
}

async function showSource() {
  const frame = middle();
  const number = ++latest;
  const query = new URLSearchParams({ kind: shown.kind, function: frame, version: data.version, chosen: chosenPlaces().join(","), hides_idle: isIdleHidden() ? 1 : 0 });
  element("of-function").textContent = nameOf(frame);
  let files, problem;
  try {
    ({ files } = await (await ask("lines?" + query)).json());
  } catch (error) {
    problem = error.message;
  }
  if (number !== latest) return;
  const none = "The profile has no lines of this function: its file has no debug information, or it is a mark and no function.";
  element("lines").replaceChildren(...(files ?? []).map(showFile));
  element("no-lines").textContent = problem ?? (files.length ? "" : none);
  element("source").dataset.of = keyOf(frame);
}

function openSource(frame) {
  selected = frame;
  look("source-view");
}
