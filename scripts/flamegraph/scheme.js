"use strict";
// Sets light or dark: the browser's preference, until the reader selects one.
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let chosenScheme = null;

function showScheme() {
  const scheme = chosenScheme ?? (prefersDark.matches ? "dark" : "light");
  document.documentElement.dataset.scheme = scheme;
  element("scheme").textContent = scheme === "dark" ? "light" : "dark";
}

function switchScheme() {
  chosenScheme = document.documentElement.dataset.scheme === "dark" ? "light" : "dark";
  showScheme();
}

function listenToScheme() {
  element("scheme").addEventListener("click", switchScheme);
  prefersDark.addEventListener("change", showScheme);
}

showScheme();
