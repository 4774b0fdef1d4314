"use strict";
// Offers what can be done with one frame: by a right click, a long press, or the keyboard's menu key.
const ACTIONS = [
  ["zoom in", ({ node }) => choose(node)],
  ["copy the name", ({ frame }) => copyName(frame)],
  ["find it everywhere", ({ frame }) => searchName(frame)],
  ["callers and callees", ({ frame }) => openSandwich(frame)],
  ["source lines", ({ frame }) => openSource(frame), () => data.has_lines],
  ["remove this stack", ({ node }) => removeStack(node), ({ node }) => node > 0 && !shown.changes],
];

// Copies by the browser's clipboard; a page of a file may have none, and copies a selection.
async function copyName(frame) {
  const name = data.frames[frame][0];
  try {
    await navigator.clipboard.writeText(name);
  } catch {
    const field = document.createElement("textarea");
    field.value = name;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  say("copied: " + shortOf(frame));
}

function openMenu(node, x, y) {
  const menu = element("menu"), frame = shown.frames[node];
  const what = { node, frame };
  hideTip();
  menu.replaceChildren(...ACTIONS.filter(([, , isOffered]) => !isOffered || isOffered(what)).map(([title, act]) => {
    const button = make("button", "", title);
    button.type = "button";
    button.setAttribute("role", "menuitem");
    button.addEventListener("click", () => {
      closeMenu();
      act(what);
    });
    return button;
  }));
  openAt(menu, x, y);
}

function openAt(menu, x, y) {
  menu.hidden = false;
  const { width, height } = menu.getBoundingClientRect();
  menu.style.left = Math.max(4, Math.min(x, window.innerWidth - width - 4)) + "px";
  menu.style.top = Math.max(4, Math.min(y, window.innerHeight - height - 4)) + "px";
  menu.firstElementChild.focus();
}

const closeMenu = () => { for (const id of ["menu", "save-menu"]) element(id).hidden = true; };

// Moves in a menu by arrows, and leaves it by Escape.
function onMenuKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") closeMenu();
  if (!step && event.key !== "Escape") return;
  event.preventDefault();
  event.stopPropagation();
  const buttons = [...event.currentTarget.children];
  if (step) buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length].focus();
}

function listenToMenu() {
  element("chart").addEventListener("contextmenu", event => {
    const node = event.target.node;
    if (node === undefined) return;
    event.preventDefault();
    const at = event.target.getBoundingClientRect();
    const isByKey = event.clientX === 0 && event.clientY === 0;
    openMenu(node, isByKey ? at.left + 10 : event.clientX, isByKey ? at.bottom : event.clientY);
  });
  for (const id of ["menu", "save-menu"]) element(id).addEventListener("keydown", onMenuKey);
  document.addEventListener("pointerdown", event => event.target.closest?.(".menu") || closeMenu());
  element("save").addEventListener("click", event => {
    const at = element("save").getBoundingClientRect();
    const wasOpen = !element("save-menu").hidden;
    closeMenu();
    if (!wasOpen) openAt(element("save-menu"), at.left, at.bottom + 2);
    event.stopPropagation();
  });
  listenToSave();
}
