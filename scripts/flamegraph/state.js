"use strict";
// Keeps what the reader has chosen in the address, behind the #: a link leads to the same picture, and Back to the one before.
// A browser sends no server that part.
let isRestoring = true; // nothing is written until the first picture stands

// Returns a short number of a text: two paths with one number would be a rare accident, and harmless.
function hashOf(text) {
  let hash = 0x811C9DC5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(36);
}

// Names a node by its place among its siblings, from the root, and its function.
const addressOf = node => node + "." + hashOf(keyOf(shown.frames[node]));

function nodeOf(address) {
  const [place, hash] = (address ?? "").split(".");
  const node = Number(place);
  return Number.isInteger(node) && node > 0 && node < shown.frames.length && hashOf(keyOf(shown.frames[node])) === hash ? node : 0;
}

const openView = () => Object.keys(VIEWS).find(isOpen) ?? "";

function stateNow() {
  const state = new URLSearchParams();
  const put = (name, value) => { if (value) state.set(name, value); };
  if (shown !== data.profiles[0]) put("kind", shown.kind);
  if (graph.zoomed) put("zoom", addressOf(graph.zoomed));
  put("search", element("term").value);
  put("expression", wantsExpression ? "1" : "");
  put("view", openView());
  if (selected !== null && (picked !== null || openView())) put("function", hashOf(keyOf(selected)));
  put("picked", picked === null ? "" : "1");
  put("list", isListWanted === null ? "" : isListWanted ? "1" : "0");
  for (const id of Object.keys(CHOICES)) if (pairsChosen(id).length) put(id, JSON.stringify(pairsChosen(id)));
  put("label", element("key").value);
  put("value", element("value").value);
  put("idle", isIdleHidden() ? "0" : "");
  put("only", onlyLanguage);
  put("fold", isFolded ? "1" : "");
  put("flip", graph.isUpward ? "1" : "");
  put("modules", areModulesColoured ? "1" : "");
  return state.toString();
}

// Writes the state into the address. `isStep`: Back comes back to what was shown before.
function writeState(isStep = false) {
  if (isRestoring || !shown) return;
  const now = stateNow();
  if (now === location.hash.slice(1)) return;
  const address = location.pathname + location.search + (now && "#" + now);
  try {
    if (isStep) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  } catch {
    // a browser may allow none in a file, or no more in a while
  }
}

function choosePairs(id, text) {
  const place = [...element(id).options].findIndex(option => JSON.stringify(option.pairs ?? []) === (text || "[]"));
  element(id).selectedIndex = Math.max(0, place);
}

// Shows what the address says. An address is a stranger's text: what is not there is left out.
function readState() {
  if (!shown) return;
  const state = new URLSearchParams(location.hash.slice(1));
  isRestoring = true;
  element("key").value = [...element("key").options].some(option => option.value === state.get("label")) ? state.get("label") : "";
  offerValues();
  element("value").value = (state.get("value") ?? "").slice(0, MOST_LETTERS);
  element("idle").setAttribute("aria-pressed", state.get("idle") === "0" && !element("idle").hidden);
  onlyLanguage = data.languages.includes(state.get("only")) ? state.get("only") : "";
  isFolded = state.get("fold") === "1";
  areModulesColoured = state.get("modules") === "1";
  setUpward(state.get("flip") === "1");
  wantsExpression = state.get("expression") === "1";
  element("expression").setAttribute("aria-pressed", wantsExpression);
  isListWanted = { 0: false, 1: true }[state.get("list")] ?? null;
  choosePairs("process", state.get("process"));
  offerChoices("thread", threadChoices());
  choosePairs("thread", state.get("thread"));
  element("term").value = (state.get("search") ?? "").slice(0, MOST_LETTERS);
  const found = state.has("function") ? data.frames.findIndex((_, frame) => hashOf(keyOf(frame)) === state.get("function")) : -1;
  selected = found < 0 ? null : found;
  picked = state.get("picked") === "1" ? selected : null;
  const place = Math.max(0, data.profiles.findIndex(profile => profile.kind === state.get("kind")));
  shown = data.profiles[place];
  filter();
  const view = state.get("view");
  look(Object.hasOwn(VIEWS, view ?? "") && !element(view).hidden ? view : "");
  zoomTo(nodeOf(state.get("zoom")));
  isRestoring = false;
}

function listenToState() {
  window.addEventListener("popstate", readState);
}
