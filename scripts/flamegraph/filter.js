"use strict";
// The samples with one label: what they make of each profile is laid out as the whole was.
const FEWEST_DIGITS = 4; // of an id that is not written out
const MOST_VALUES = 200; // offered; any can be typed
const MOST_FUNCTIONS = 500; // listed, as in the whole
const IDS = ["span_id", "trace_id"];
let whole = null; // the profiles of all samples
let valuesOf = null; // by name of a label: how much of the first profile that has it each of its values has

function surveyLabels() {
  const sets = data.labels.map(pairs => new Map(pairs));
  const weights = sets.map(() => 0);
  for (const { total, samples } of data.profiles) {
    samples.labels.forEach((set, i) => { weights[set] += samples.values[i] / total / data.profiles.length; });
  }
  valuesOf = new Map();
  sets.forEach((set, i) => {
    for (const [name, value] of set) {
      if (!valuesOf.has(name)) valuesOf.set(name, new Map());
      valuesOf.get(name).set(value, (valuesOf.get(name).get(value) || 0) + weights[i]);
    }
  });
}

// --- a profile of some of the samples ---

// What is left at each node of the whole's tree: of its own, and with all below it.
function sumsOf(profile, isWanted) {
  const [own, values, ownObjects, objects] = [0, 1, 2, 3].map(() => new Float64Array(profile.depths.length));
  const { samples } = profile;
  for (let i = 0; i < samples.at.length; i++) {
    if (!isWanted[samples.labels[i]]) continue;
    const isDrawn = samples.at[i] >= 0; // else this is the last of its callers that is
    const node = isDrawn ? samples.at[i] : ~samples.at[i];
    const count = samples.objects ? samples.objects[i] : 0;
    values[node] += samples.values[i];
    objects[node] += count;
    own[node] += isDrawn ? samples.values[i] : 0;
    ownObjects[node] += isDrawn ? count : 0;
  }
  for (let node = profile.depths.length - 1; node > 0; node--) {
    values[profile.parent[node]] += values[node];
    objects[profile.parent[node]] += objects[node];
  }
  return { own, values, ownObjects, objects };
}

// Those with anything left, in preorder, the widest of siblings first.
function orderOf(profile, sums) {
  const below = new Map();
  for (let node = 1; node < profile.depths.length; node++) {
    if (!sums.values[node]) continue;
    const parent = profile.parent[node];
    if (!below.has(parent)) below.set(parent, []);
    below.get(parent).push(node);
  }
  const order = [];
  const open = [0];
  while (open.length) {
    const node = open.pop();
    order.push(node);
    for (const child of (below.get(node) || []).sort((a, b) => sums.values[a] - sums.values[b] || b - a)) open.push(child);
  }
  return order;
}

// [frame, self, total] of each function, with objects if they are counted; recursion counts once.
function functionsOf(profile, sums, order) {
  const rows = new Map();
  const open = []; // the frame at each depth, but the root's
  for (const node of order.slice(1)) {
    const frame = profile.frames[node];
    while (open.length >= profile.depths[node]) rows.get(open.pop()).within--;
    if (!rows.has(frame)) rows.set(frame, { figures: [frame, 0, 0, 0, 0], within: 0 });
    const row = rows.get(frame);
    const isOutermost = row.within === 0;
    row.within++;
    open.push(frame);
    row.figures[1] += sums.own[node];
    row.figures[2] += isOutermost ? sums.values[node] : 0;
    row.figures[3] += sums.ownObjects[node];
    row.figures[4] += isOutermost ? sums.objects[node] : 0;
  }
  const text = ([frame]) => data.frames[frame][0] + "\0" + data.modules[data.frames[frame][1]];
  const figures = [...rows.values()].map(row => row.figures);
  figures.sort((a, b) => b[1] - a[1] || b[2] - a[2] || (text(a) < text(b) ? -1 : 1));
  return figures.slice(0, MOST_FUNCTIONS).map(row => profile.samples.objects ? row : row.slice(0, 3));
}

function partOf(profile, isWanted) {
  if (!profile.left) layOut(profile);
  const sums = sumsOf(profile, isWanted);
  const order = orderOf(profile, sums);
  const modules = data.modules.map(() => 0);
  const languages = data.languages.map(() => 0);
  for (const node of order.slice(1)) {
    modules[data.frames[profile.frames[node]][1]] += sums.own[node];
    languages[data.spoken[profile.frames[node]]] += sums.own[node];
  }
  const total = sums.values[0];
  const part = { title: profile.title, unit: profile.unit, noun: profile.noun, total, left_out: profile.left_out, modules, languages, samples: profile.samples, states: profile.states, table: profile.table };
  part.headline = profile.title + ": " + readable(total, profile.unit) +
      (profile.samples.objects ? " in " + readableCount(sums.objects[0]) + " " + profile.noun : "");
  part.functions = functionsOf(profile, sums, order);
  part.depths = order.map(node => profile.depths[node]);
  part.frames = order.map(node => profile.frames[node]);
  part.values = order.map(node => sums.values[node]);
  part.own = order.map(node => sums.own[node]);
  return part;
}

// --- the control ---

// [name, value] that is meant by what is typed; a text: why none is. An id needs only as many digits as tell it apart,
// and no name.
function labelOf(name, typed) {
  const values = valuesOf.get(name);
  const exact = [typed, typed.trim()].find(it => values && values.has(it)); // what is pasted has blanks around it
  if (exact !== undefined) return [name, exact];
  const isId = !name || IDS.includes(name);
  if (!isId) return "no sample has that value";
  const digits = typed.trim().toLowerCase();
  const names = (name ? [name] : IDS).filter(it => valuesOf.has(it));
  if (digits.length < FEWEST_DIGITS) return "";
  const found = names.flatMap(it => [...valuesOf.get(it).keys()].filter(id => id.startsWith(digits)).map(id => [it, id]));
  if (found.length === 1) return found[0];
  return found.length ? found.length + " ids begin so" : "no sample has that id";
}

const percent = part => (100 * part).toFixed(1) + "%";

function offerValues() {
  const values = [...valuesOf.get(element("key").value) || []].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  element("values").replaceChildren(...values.slice(0, MOST_VALUES).map(([value, part]) => {
    const option = make("option", "", percent(part));
    option.value = value;
    return option;
  }));
  element("value").placeholder = element("key").value ? "choose or type" : "span or trace id";
  element("value").hidden = !element("key").value && !IDS.some(name => valuesOf.has(name));
}

const isIdleHidden = () => element("idle").getAttribute("aria-pressed") === "true";

function filter() {
  const typed = element("value").value;
  const label = typed ? labelOf(element("key").value, typed) : "";
  const isLabel = Array.isArray(label);
  if (isLabel && element("key").value !== label[0]) {
    element("key").value = label[0];
    offerValues();
  }
  const place = whole.findIndex((profile, i) => data.profiles[i] === shown);
  const hidesIdle = isIdleHidden();
  const hasLabel = pairs => !isLabel || pairs.some(([name, value]) => name === label[0] && value === label[1]);
  const isWanted = data.labels.map((pairs, set) => hasLabel(pairs) && !(hidesIdle && data.idle[set]));
  data.profiles = whole.map(profile => isLabel || hidesIdle && profile.idle ? partOf(profile, isWanted) : profile);
  if (isLabel) for (const part of data.profiles) part.table = ""; // it is of all samples
  const now = data.profiles[place].total ? place : Math.max(0, data.profiles.findIndex(profile => profile.total));
  showProfiles(data.profiles[now]);
  const isPart = shown !== whole[now];
  const words = isPart ? percent(shown.total / whole[now].total) + " of " + whole[now].headline : isLabel ? "" : label;
  element("kept").textContent = words + (isPart && data.unlabelled ? ", at least" : "");
}

// Of the first profile that has any.
function offerToHideIdle() {
  const profile = data.profiles.find(it => it.idle);
  element("idle").hidden = !profile;
  if (!profile) return;
  element("idle").textContent = "hide idle: " + percent(profile.idle / profile.total) + " of " + profile.title;
  element("idle").title = "what threads did that hardly do anything but wait there for work";
  element("idle").addEventListener("click", () => {
    element("idle").setAttribute("aria-pressed", !isIdleHidden());
    filter();
  });
}

function startFilter() {
  whole = data.profiles;
  surveyLabels();
  element("filter").hidden = !valuesOf.size;
  offerToHideIdle();
  const names = [...IDS.filter(name => valuesOf.has(name)), ...[...valuesOf.keys()].filter(name => !IDS.includes(name)).sort()];
  for (const name of names) {
    const option = make("option", "", name);
    option.value = name;
    element("key").append(option);
  }
  offerValues();
  element("key").addEventListener("change", () => {
    element("value").value = "";
    offerValues();
    filter();
    if (element("key").value) element("value").focus();
  });
  element("value").addEventListener("input", filter);
}
