"use strict";
// Shows what the colours mean. Each entry is a button that highlights what it names.

// Makes a button of the legend, for the nodes that match.
function press(button, matches, sum) {
  const isPressed = button.getAttribute("aria-pressed") === "false";
  element("term").value = "";
  search();
  button.setAttribute("aria-pressed", isPressed);
  if (isPressed) highlight(matches, sum);
  element("more-details").textContent = isPressed ? button.title : "";
}

function addToLegend(className, text, title, matches, sum) {
  const button = make("button", className, text);
  button.type = "button";
  button.title = title;
  button.setAttribute("aria-pressed", false);
  button.addEventListener("click", () => press(button, matches, sum));
  element("legend").append(button);
  return button;
}

// Returns the hues of modules that have functions in a profile.
function huesThere() {
  const isThere = new Set();
  for (let node = 1; node < shown.frames.length; node++) isThere.add(data.frames[shown.frames[node]][1]);
  return new Set([...isThere].map(hueOf));
}

function showModules() {
  const own = new Array(OTHERS + 1).fill(0);
  shown.modules.forEach((value, module) => { own[hueOf(module)] += value; });
  const order = hue => hue === OTHERS ? -1 : own[hue];
  const hueOfNode = node => hueOf(data.frames[shown.frames[node]][1]);
  shown.hues ??= huesThere();
  for (const hue of [...shown.hues].sort((a, b) => order(b) - order(a) || a - b)) {
    const module = hue === OTHERS ? "others" : data.modules[hue];
    addToLegend("colour module" + hue, share(own[hue]) + " " + module, "self, of all code in " + module, node => hueOfNode(node) === hue);
  }
}

function showLegend() {
  element("legend").replaceChildren();
  const legends = [[shown.states, "states of threads", showStates], [shown.changes, "changes", showChanges],
    [areLanguagesColoured(), "languages", showLanguages], [true, "modules", showModules]];
  const [, title, fill] = legends.find(([isIt]) => isIt);
  element("legend").setAttribute("aria-label", title);
  offerColours();
  fill();
}
