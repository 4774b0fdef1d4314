"use strict";
// Colours the difference of two profiles: a frame is red where the changed functions below it account for more in B
// than in A, blue where they account for less, and grey where no change exceeds chance. A larger changed part gives a
// stronger colour.
const MORE = 8; // hues
const LESS = 215;
const STRONGEST = 0.25; // a change by a quarter of a frame, or more, has the full colour

// Returns how much of a node changed, from -1 to 1.
function changeOf(node) {
  const gain = shown.changes.gain[node] / (shown.values[node] || 1);
  return Math.max(-1, Math.min(1, gain / STRONGEST));
}

function fillOfChange(node) {
  const change = changeOf(node);
  const strength = change ? 15 + 70 * Math.abs(change) : 4;
  return "hsl(" + (change < 0 ? LESS : MORE) + " " + strength.toFixed(0) + "% var(--lightness))";
}

function describeChange(node) {
  const { before, after, gain } = shown.changes;
  const rest = gain[node] ? "" : "; no change that is more than chance";
  // B is drawn at A's scale: its figure is its own all the same
  return "A " + readable(before[node]) + ", B " + readable(after[node] / (shown.scale || 1)) + rest;
}

function showChanges() {
  const { gain } = shown.changes;
  const parts = [["more in B", node => gain[node] > 0, MORE], ["less in B", node => gain[node] < 0, LESS]];
  for (const [text, matches, hue] of parts) {
    const sum = gain.reduce((all, _, node) => all + (shown.own[node] && matches(node) ? Math.abs(gain[node]) : 0), 0);
    const button = addToLegend("colour", text, "functions that changed by more than chance, and what calls them", matches, sum);
    button.style.background = "hsl(" + hue + " 85% var(--lightness))";
    button.disabled = !gain.some((_, node) => matches(node));
  }
}
