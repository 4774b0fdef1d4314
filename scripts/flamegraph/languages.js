"use strict";
// Colours frames by the language, or rather the runtime, of their code: OpenTelemetry's profile.frame.type. Where a
// profile has several, a frame has its language's hue; the modules' colours are one click away. Wall time keeps the
// colours of its states: there the question is what the threads did.
const LANGUAGE_HUES = new Map(Object.entries({ // a type that is not listed is grey
  native: 210, kernel: 290, cpython: 52, jvm: 22, v8js: 130, dotnet: 265, ruby: 350, php: 240, beam: 320, go: 180, perl: 95,
  rust: 8,
}));
let areModulesColoured = false;

const typeOfFrame = frame => data.languages[data.spoken[frame]];
const typeOf = node => typeOfFrame(shown.frames[node]);
const languageName = type => data.language_names[data.languages.indexOf(type)];

// Returns the types of a profile's frames; roots, labels and marks have no type.
function typesOf(profile) {
  return [...new Set(profile.frames)].map(typeOfFrame).filter((type, i, all) => type && all.indexOf(type) === i);
}

const areLanguagesColoured = () => !shown.states && !shown.changes && !areModulesColoured && shown.types.length > 1;

// Sets a box's hue; roots and marks are grey.
function setHue(box, type) {
  const hue = LANGUAGE_HUES.get(type);
  box.style.setProperty("--hue", hue ?? 0);
  box.style.setProperty("--saturation", hue === undefined ? "6%" : "");
}

function clearHue(box) {
  box.style.removeProperty("--hue");
  box.style.removeProperty("--saturation");
}

function showLanguages() {
  const sums = new Map(shown.types.map(type => [type, shown.languages[data.languages.indexOf(type)]]));
  for (const type of [...shown.types].sort((a, b) => sums.get(b) - sums.get(a))) {
    const title = "self, of all code of type " + type;
    const button = addToLegend("colour", share(sums.get(type)) + " " + languageName(type), title, node => typeOf(node) === type);
    setHue(button, type);
  }
}

// Offers a choice of what colours mean, where there is one.
function offerColours() {
  element("colours").hidden = shown.types.length < 2 || Boolean(shown.states || shown.changes);
  element("colours").setAttribute("aria-pressed", areModulesColoured);
}

function switchColours() {
  areModulesColoured = !areModulesColoured;
  showLegend();
  search();
  writeState();
}
