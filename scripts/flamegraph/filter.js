"use strict";
// Shows the samples with one label: their part of each profile is laid out as the whole was.
const FEWEST_DIGITS = 4; // digits of an id that is not written out
const MOST_VALUES = 200; // values that are offered; any can be typed
const MOST_NAMES = 1000; // names of labels
const IDS = ["span_id", "trace_id"];
let whole = null; // the profiles of all samples
let sets = null; // sets of labels: value by name
let weights = null; // of each set: its part of the profile that is shown
let surveyed = null; // the profile that the weights are of
let valuesOf = null; // by name of a label: how much of the profile each of its values has

// Weighs sets of labels by the kind that is shown: its shares stand beside processes, threads and values.
function surveyLabels(profile) {
  sets = data.labels.map(pairs => new Map(pairs));
  weights = sets.map(() => 0);
  const { total, samples } = profile;
  samples.labels.forEach((set, i) => { weights[set] += samples.values[i] / (total || 1); });
  surveyed = profile;
  valuesOf = new Map();
  sets.forEach((set, i) => {
    for (const [name, value] of set) {
      if (!valuesOf.has(name)) valuesOf.set(name, new Map());
      valuesOf.get(name).set(value, (valuesOf.get(name).get(value) || 0) + weights[i]);
    }
  });
}

// --- a profile of some of the samples ---

// Returns the columns of a tree with these samples alone.
function treeOf({ tree, samples }, isWanted) {
  const [own, unseen, objects, unseenObjects] = [0, 1, 2, 3].map(() => new Float64Array(tree.parents.length));
  for (let i = 0; i < samples.at.length; i++) {
    if (!isWanted[samples.labels[i]]) continue;
    const isDrawn = samples.at[i] >= 0; // else this is its last caller that is drawn
    const node = isDrawn ? samples.at[i] : ~samples.at[i];
    (isDrawn ? own : unseen)[node] += samples.values[i];
    if (samples.objects) (isDrawn ? objects : unseenObjects)[node] += samples.objects[i];
  }
  return { parents: tree.parents, frames: tree.frames, own, unseen, ...(samples.objects ? { objects, unseenObjects } : {}) };
}

// Returns the whole tree, where a profile has its samples' stacks. The samples get the tree's nodes.
function grown(samples) {
  const { tree, nodes } = treeOfStacks(samples.stacks);
  samples.at = samples.stacks.map(stack => nodes[stack]);
  return treeOf({ tree, samples }, data.labels.map(() => true));
}

function sumWanted(samples, values, isWanted) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) if (isWanted[samples.labels[i]]) sum += values[i];
  return sum;
}

// Returns a part of a profile; it is laid out when it is shown: other profiles need their sums alone. `isWanted`: by set of labels;
// null: every sample is wanted, also those without labels.
function partOf(profile, isWanted) {
  const { kind, title, unit, noun, left_out, samples, states, table, order, period } = profile;
  const total = isWanted ? sumWanted(samples, samples.values, isWanted) : profile.total;
  const part = { kind, title, unit, noun, left_out, samples, states, table, order, period, total, whole: profile };
  part.headline = !isWanted ? profile.headline : title + ": " + readable(total, unit) +
      (samples.objects ? " in " + readableCount(sumWanted(samples, samples.objects, isWanted)) + " " + noun : "");
  part.isWanted = isWanted;
  return part;
}

function sumSelf(profile) {
  profile.modules = data.modules.map(() => 0);
  profile.languages = data.languages.map(() => 0);
  for (let node = 0; node < profile.frames.length; node++) {
    if (!profile.own[node]) continue;
    const frame = profile.frames[node];
    profile.modules[data.frames[frame][1]] += profile.own[node];
    profile.languages[data.spoken[frame]] += profile.own[node];
  }
}

// Sets what is left where stacks were taken away.
function setTotal(profile) {
  profile.total = profile.values[0];
  profile.headline = profile.title + ": " + readable(profile.total, profile.unit) +
      (profile.objects ? " in " + readableCount(profile.objects[0]) + " " + profile.noun : "");
}

// Prepares what is drawn of a profile.
function prepare(profile) {
  if (profile.depths) return;
  const base = profile.whole ?? profile;
  base.tree ??= grown(base.samples);
  const columns = profile.whole ? derived(profile.isWanted ? treeOf(base, profile.isWanted) : base.tree, base) : base.tree;
  const { order, ...tree } = laidOut(columns);
  Object.assign(profile, tree);
  for (const [name, column] of Object.entries(profile.changes ?? {})) {
    profile.changes[name] = taken(new Float64Array(column), order);
  }
  if (profile.whole) {
    sumSelf(profile);
    if (removed.some(({ kind }) => kind === profile.kind)) setTotal(profile);
  }
  profile.functions ??= functionsOf(profile);
}

// --- the control ---

// Returns the [name, value] that the typed text means; a text: why there is none. An id needs only as many digits as
// distinguish it, and no name.
function labelOf(name, typed) {
  const values = valuesOf.get(name);
  const exact = [typed, typed.trim()].find(it => values && values.has(it)); // pasted text has blanks around it
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
  const place = Math.max(0, whole.findIndex((profile, i) => data.profiles[i] === shown));
  const hidesIdle = isIdleHidden();
  const pairs = [...(isLabel ? [label] : []), ...chosenPairs()];
  const isWanted = sets.map((set, i) => pairs.every(([name, value]) => set.get(name) === value) && !(hidesIdle && data.idle[i]));
  data.profiles = whole.map(profile => pairs.length || hidesIdle && profile.idle || isDerived(profile.kind) ?
      partOf(profile, pairs.length || hidesIdle ? isWanted : null) : profile);
  if (pairs.length) for (const part of data.profiles) part.table = ""; // the table is of all samples
  showProfiles(data.profiles[place]);
  const isPart = shown !== whole[place];
  const words = isPart && shown.total !== whole[place].total ? percent(shown.total / (whole[place].total || 1)) + " of " + whole[place].headline : isLabel ? "" : label;
  element("kept").textContent = words + (isPart && data.unlabelled ? ", at least" : "");
  element("filter-view").textContent = isPart && shown.total !== whole[place].total ? "filter: " + percent(shown.total / (whole[place].total || 1)) : "filter";
  element("filter-view").setAttribute("aria-pressed", isPart);
  showDerived();
  writeState(true);
}

// Offers it for the first profile that has idle threads.
function offerToHideIdle() {
  const profile = data.profiles.find(it => it.idle);
  element("idle").hidden = !profile;
  if (!profile) return;
  element("idle").textContent = "hide idle: " + percent(profile.idle / profile.total) + " of " + profile.title;
  element("idle").title = "what threads did that hardly do anything but wait there for work";
}

function offerNames() {
  const names = [...IDS.filter(name => valuesOf.has(name)), ...[...valuesOf.keys()].filter(name => !IDS.includes(name)).sort().slice(0, MOST_NAMES)];
  const chosen = element("key").value;
  element("key").replaceChildren(...["", ...names].map(name => {
    const option = make("option", "", name || "any label");
    option.value = name;
    return option;
  }));
  element("key").value = names.includes(chosen) ? chosen : "";
}

// Offers the labels of data that has just come, or of another kind.
function offerLabels(profile) {
  surveyLabels(profile);
  offerNames();
  offerValues();
  offerThreads();
}

function offerFilter(profile) {
  whole = data.profiles;
  offerToHideIdle();
  offerLabels(profile);
  element("by-label").hidden = !valuesOf.size;
}

function showFilter(isShown) {
  element("filter").hidden = !isShown;
  element("filter-view").setAttribute("aria-expanded", isShown);
}

function listenToFilter() {
  element("filter-view").addEventListener("click", () => {
    showFilter(element("filter").hidden);
    redraw();
  });
  element("idle").addEventListener("click", () => {
    element("idle").setAttribute("aria-pressed", !isIdleHidden());
    filter();
  });
  element("key").addEventListener("change", () => {
    element("value").value = "";
    offerValues();
    filter();
    if (element("key").value) element("value").focus();
  });
  element("value").addEventListener("input", filter);
  listenToThreads();
  listenToDerived();
}
