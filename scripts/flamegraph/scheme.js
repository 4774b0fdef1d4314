"use strict";
// Sets light or dark: the browser's preference, until the reader selects one.
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let chosenScheme = remembered();

// A browser may keep nothing for a page of a file.
function remembered() {
  try {
    const scheme = localStorage.getItem("otelprof.scheme");
    return ["light", "dark"].includes(scheme) ? scheme : null;
  } catch {
    return null;
  }
}

function rememberScheme() {
  try {
    localStorage.setItem("otelprof.scheme", chosenScheme);
  } catch {
    // it stays until the page is closed
  }
}

function showScheme() {
  const scheme = chosenScheme ?? (prefersDark.matches ? "dark" : "light");
  document.documentElement.dataset.scheme = scheme;
  element("scheme").textContent = scheme === "dark" ? "light" : "dark";
}

function switchScheme() {
  chosenScheme = document.documentElement.dataset.scheme === "dark" ? "light" : "dark";
  rememberScheme();
  showScheme();
}

function listenToScheme() {
  element("scheme").addEventListener("click", switchScheme);
  prefersDark.addEventListener("change", showScheme);
}

showScheme();
