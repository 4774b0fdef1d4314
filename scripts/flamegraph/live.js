"use strict";
// Follows a program: new data replaces the old, and the view stays where the reader left it.
const LOOK_MS = 1000; // how often the page requests new data from the server
let isPaused = false;

// Returns the node at the end of a path from the root, or of the part of the path that exists.
function nodeAt(path) {
  let node = 0;
  for (const key of path) {
    let below = node + 1;
    while (below < shown.end[node] && keyOf(shown.frames[below]) !== key) below = shown.end[below];
    if (below >= shown.end[node]) return node;
    node = below;
  }
  return node;
}

function remember() {
  if (!shown) return null;
  const keys = [selected, ...visited].map(frame => frame === null ? null : keyOf(frame));
  return { kind: shown.kind, path: wholePath(graph.zoomed), keys, scroll: element("pane").scrollTop };
}

function frameOf(key) {
  const frame = data.frames.findIndex((_, i) => keyOf(i) === key);
  return frame < 0 ? null : frame;
}

// Replaces the data by data that has come.
function take(found) {
  const before = remember();
  const wasPart = data.has_more;
  data = found;
  showAbout();
  element("source-view").hidden = !data.has_lines;
  for (const id of ["tools", "colouring", "hint"]) element(id).hidden = !data.profiles.length;
  if (!data.profiles.length) return showNothing();
  if (before) [selected, ...visited] = before.keys.map(key => key === null ? null : frameOf(key));
  visited = visited.filter(frame => frame !== null);
  const wanted = new URLSearchParams(location.hash.slice(1)).get("kind");
  const isAddressed = !before || wasPart && wanted && wanted !== before.kind; // the kind of the address comes only now
  const kind = isAddressed ? wanted : before.kind;
  shown = data.profiles.find(it => it.kind === kind) ?? data.profiles[0];
  if (picked !== null) picked = selected;
  offerFilter(shown);
  if (isAddressed) return readState();
  isRestoring = true; // new data are no step of the reader
  filter();
  if (before.path.length) zoomTo(nodeAt(before.path));
  element("pane").scrollTop = before.scroll;
  isRestoring = false;
  writeState();
}

function showState(state) {
  element("state").textContent = (isPaused && !state.has_ended ? "paused; " : "") + state.text;
  element("state").className = state.has_ended ? "ended" : isPaused ? "paused" : "running";
  element("pause").hidden = state.has_ended;
}

async function follow() {
  try {
    const state = await (await ask("state")).json();
    showState(state);
    if (!isPaused && state.version !== data.version) take(await fetchData());
    if (state.has_ended && state.version === data.version) return;
  } catch (error) {
    showState({ has_ended: true, text: "otelprof does not answer any more: it has ended" });
    return;
  }
  setTimeout(follow, LOOK_MS);
}

function pause() {
  isPaused = !isPaused;
  element("pause").textContent = isPaused ? "go on" : "pause";
  element("pause").setAttribute("aria-pressed", isPaused);
}

function startToFollow() {
  element("live").hidden = !data.is_live;
  element("pause").addEventListener("click", pause);
  if (data.is_live) follow();
}
