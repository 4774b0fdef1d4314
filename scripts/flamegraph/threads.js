"use strict";
// Selects one process of several, and one thread, or all threads of a name.
const INSTANCE = "service.instance.id";
const PROCESS_NAME = "process.executable.name";
const PROCESS_ID = "process.pid";
const THREAD_NAME = "thread.name";
const THREAD_ID = "thread.id";
const MOST_CHOICES = 300; // in a list
const CHOICES = { process: "all processes", thread: "all threads" }; // titles where nothing is selected

// Sums up weights by a name and a number in sets of labels, the heaviest name first: [name, weight, [[number, weight, set],
// ...]].
function grouped(name, number, isWanted) {
  const groups = new Map();
  sets.forEach((set, i) => {
    if (!(set.has(name) || set.has(number)) || !isWanted(set)) return;
    const group = groups.get(set.get(name) ?? "") ?? new Map();
    groups.set(set.get(name) ?? "", group);
    group.set(set.get(number) ?? "", (group.get(set.get(number) ?? "") ?? 0) + weights[i]);
  });
  const sumOfAll = members => members.reduce((sum, [, weight]) => sum + weight, 0);
  const byWeight = (a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1);
  return [...groups].map(([text, group]) => [text, sumOfAll([...group]), [...group].sort(byWeight)]).sort(byWeight);
}

const pairsOf = (...pairs) => pairs.filter(([, value]) => value !== "");

// Returns titles with the labels that they stand for.
function threadChoices() {
  const process = pairsChosen("process");
  const groups = grouped(THREAD_NAME, THREAD_ID, set => process.every(([name, value]) => set.get(name) === value));
  return groups.flatMap(([name, weight, members]) => {
    const one = ([id, part]) => [(name || "thread") + (id ? " (" + id + ")" : "") + ", " + percent(part), pairsOf([THREAD_NAME, name], [THREAD_ID, id])];
    const all = [name + ", all " + members.length + ": " + percent(weight), pairsOf([THREAD_NAME, name])];
    return members.length > 1 && name ? [all, ...members.map(one)] : members.map(one);
  });
}

function processChoices() {
  const found = new Map();
  sets.forEach((set, i) => {
    const pairs = [INSTANCE, PROCESS_NAME, PROCESS_ID].filter(name => set.has(name)).map(name => [name, set.get(name)]);
    if (!pairs.length) return;
    const key = JSON.stringify(pairs);
    found.set(key, [pairs, (found.get(key)?.[1] ?? 0) + weights[i]]);
  });
  return [...found.values()].sort((a, b) => b[1] - a[1]).map(([pairs, weight]) => {
    const of = new Map(pairs);
    const id = of.get(PROCESS_ID);
    return [(of.get(PROCESS_NAME) ?? of.get(INSTANCE) ?? "process") + (id ? " (" + id + ")" : "") + ", " + percent(weight), pairs];
  });
}

// Puts choices into a list, and keeps the selected one.
function offerChoices(id, choices) {
  const before = JSON.stringify(pairsChosen(id));
  const options = [[CHOICES[id], []], ...choices.slice(0, MOST_CHOICES)].map(([text, pairs]) => {
    const option = make("option", "", text);
    option.pairs = pairs;
    return option;
  });
  element(id).replaceChildren(...options);
  element(id).selectedIndex = Math.max(0, options.findIndex(({ pairs }) => JSON.stringify(pairs) === before));
  element(id).hidden = choices.length < 2;
}

const pairsChosen = id => element(id).selectedOptions[0]?.pairs ?? [];
const chosenPairs = () => Object.keys(CHOICES).flatMap(pairsChosen);

function offerThreads() {
  offerChoices("process", processChoices());
  offerChoices("thread", threadChoices());
}

function listenToThreads() {
  element("process").addEventListener("change", () => {
    offerChoices("thread", threadChoices());
    filter();
  });
  element("thread").addEventListener("change", filter);
}
