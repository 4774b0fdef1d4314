"use strict";
// Runs when the page opens, and when another profile is selected.

function show(profile) {
  shown = profile;
  prepare(shown);
  if (surveyed !== (profile.whole ?? profile)) offerLabels(profile.whole ?? profile);
  graph.tree = shown;
  graph.zoomed = 0;
  graph.drawn = new Map(); // elements still there belong to another tree
  if (shown.states && !shown.parts) divide(shown);
  shown.types ??= typesOf(shown);
  for (const button of element("profiles").children) button.setAttribute("aria-pressed", button.profile === shown);
  element("left-out").textContent = shown.left_out ? "The " + shown.left_out + " smallest frames are left out." : "";
  element("of-states").hidden = !shown.states;
  element("of-changes").hidden = !shown.changes;
  say(shown.headline);
  showLegend();
  showOther();
  if (!shown.table && isOpen("other-view")) look();
  showList();
  redraw();
  element("reset").disabled = true;
  element("nothing").hidden = shown.total > 0;
  search();
}

function addProfile(profile) {
  const button = make("button", "", profile.headline);
  button.type = "button";
  button.profile = profile;
  button.disabled = !profile.total && profile !== shown;
  button.addEventListener("click", () => {
    show(profile);
    filter(); // names how much of this kind the filter leaves
  });
  element("profiles").append(button);
}

function showProfiles(first) {
  shown = first;
  prepare(first); // the sum of its button
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
  say(data.is_live ? "" : "A program that used next to no CPU time and memory, or that is excluded, leaves none.");
}

function choose(node, event) {
  if (event?.altKey && node) return removeStack(node);
  selected = node ? shown.frames[node] : selected;
  zoomTo(node);
  tell(node);
  writeState(true);
}

function listen() {
  graph.listen(choose, tell);
  element("reset").addEventListener("click", () => choose(0));
  element("flip").addEventListener("click", () => {
    setUpward(!graph.isUpward);
    redraw();
    writeState();
  });
  listenToSearch();
  listenToTip();
  listenToMenu();
  listenToState();
  element("colours").addEventListener("click", switchColours);
  window.addEventListener("resize", () => {
    showList();
    redraw();
  });
  if (matchMedia("(pointer: coarse)").matches) element("how").textContent = "A tap zooms, a long press offers more.";
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
  say(shown.headline, "reading the other kinds \u2026");
  try {
    take(await fetchData("all"));
  } catch (error) {
    say(shown.headline, "the other kinds cannot be read: " + error.message);
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
