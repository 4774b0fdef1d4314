"use strict";
// Runs when the page opens, and when another profile is selected.

function show(profile) {
  shown = profile;
  prepare(shown);
  graph.tree = shown;
  graph.zoomed = 0;
  graph.drawn = new Map(); // elements still there belong to another tree
  if (shown.states && !shown.parts) divide(shown);
  shown.types ??= typesOf(shown);
  for (const button of element("profiles").children) button.setAttribute("aria-pressed", button.profile === shown);
  element("left-out").textContent = shown.left_out ? "The " + shown.left_out + " smallest frames are left out." : "";
  element("of-states").hidden = !shown.states;
  element("of-changes").hidden = !shown.changes;
  element("details").textContent = shown.headline;
  showLegend();
  showOther();
  if (!shown.table && isOpen("other-view")) look();
  showList();
  redraw();
  element("reset").disabled = true;
  search();
}

function addProfile(profile) {
  const button = make("button", "", profile.headline);
  button.type = "button";
  button.profile = profile;
  button.disabled = !profile.total;
  button.addEventListener("click", () => show(profile));
  element("profiles").append(button);
}

function showProfiles(first) {
  element("profiles").replaceChildren();
  data.profiles.forEach(addProfile);
  show(first);
}

// Shows which process the profile is of, and the time that it covers.
function showAbout() {
  element("title").textContent = element("title").title = shortened(data.title);
  element("about").textContent = shortened(data.about?.text ?? "");
  element("about").title = shortened(data.about?.more ?? "");
}

function showNothing() {
  element("filter").hidden = true;
  element("list").hidden = true;
  element("chart").textContent = data.is_live ? "no samples yet" : "no samples";
  element("details").textContent = data.is_live ? "" : "A program that used next to no CPU time and memory, or that is excluded, leaves none.";
}

function choose(node) {
  selected = node ? shown.frames[node] : selected;
  zoomTo(node);
}

function listen() {
  graph.listen(choose, tell);
  element("term").addEventListener("input", search);
  element("reset").addEventListener("click", () => zoomTo(0));
  element("colours").addEventListener("click", switchColours);
  window.addEventListener("resize", () => {
    showList();
    redraw();
  });
  listenToViews();
  listenToFilter();
  listenToSandwich();
  listenToScheme();
  listenToKeys();
}

// Prepares the other kinds, while the reader reads the first.
function prepareOthers() {
  const next = data.profiles.find(profile => !profile.depths);
  if (!next) return;
  prepare(next);
  requestIdleCallback(prepareOthers);
}

// Replaces a large file's first kind, which comes before the others are summed up, by all kinds; the view stays.
async function takeOthers() {
  element("details").textContent += " (reading the other kinds \u2026)";
  try {
    take(await fetchData("all"));
  } catch (error) {
    element("details").textContent = shown.headline + " (the other kinds cannot be read: " + error.message + ")";
  }
}

async function start() {
  listen();
  element("title").textContent = data.title;
  if (isServed) {
    element("chart").textContent = "reading \u2026";
    try {
      take(await fetchData());
    } catch (error) {
      element("chart").textContent = "otelprof has not answered: " + error.message;
      return;
    }
    if (data.has_more) await takeOthers();
    startToFollow();
    if (!data.is_live) requestIdleCallback(prepareOthers);
  } else {
    take(data);
  }
}

start();
