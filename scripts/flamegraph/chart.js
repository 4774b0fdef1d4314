"use strict";
// Draws a tree as rows of frames: those that are wide enough to see. However large the tree, the number of drawn
// frames has a bound.
const ROW = 20; // pixels
const NARROWEST = 1; // pixels: a narrower frame is not drawn, nor are its callees
const WIDENED = 1.5; // factor by which the narrowest width grows at a time, where too many frames would be drawn
const FEW_DRAWN = 500; // frames that are equally wide may leave no more
const PADDING = 8; // pixels beside a name
const LABELLED = 28; // pixels that have room for a few letters
const MOST_DRAWN = 4000; // frames: with more of them, the narrowest width grows
const MOST_LETTERS_DRAWN = 500; // letters of a name: more have no room
const OTHERS = 8; // the hue of frames in no module, or in one beyond the largest eight

const hueOf = module => data.modules[module] === "" ? OTHERS : Math.min(module, OTHERS);

// `found`: whether the search finds the frame; undefined: there is no search. `isFilled`: in other colours than the modules'.
function colourOf(frame, found, isFilled) {
  if (found !== undefined) return found ? "found" : "dim";
  if (isFilled) return "colour";
  const [name, module] = data.frames[frame];
  const hue = areLanguagesColoured() ? "" : " module" + hueOf(module);
  return "colour " + (name.startsWith("[") ? "nameless" : "shade" + frame % 3) + hue;
}

class Chart {
  // `looks`: labelOf(node), foundOf(node) and fillOf(node) of the tree. `isUpward`: a callee is drawn below its callers.
  constructor(id, looks, isUpward = false) {
    this.place = element(id);
    this.looks = looks;
    this.isUpward = isUpward;
    this.skipsRoot = isUpward; // the root is drawn elsewhere
    this.tree = null;
    this.zoomed = 0; // a node
    this.drawn = new Map(); // from a node to its element
  }

  // Yields nodes in preorder, none that is narrower, and of so many rows. Siblings come the widest first, so the first that is
  // too narrow ends them.
  visible(smallest, most, rows) {
    const { values, end, parent, depths } = this.tree;
    const last = depths[this.zoomed] + rows;
    const found = [];
    for (let node = this.zoomed; node < end[this.zoomed] && found.length <= most;) {
      if (node !== this.zoomed && (values[node] < smallest || depths[node] >= last)) { node = end[parent[node]]; continue; }
      found.push(node++);
    }
    return found;
  }

  nodesToDraw() {
    const width = Math.max(1, this.place.clientWidth);
    const drawable = (narrowest, rows) => this.visible(this.tree.values[this.zoomed] * narrowest / width, MOST_DRAWN, rows);
    let narrowest = NARROWEST, found = drawable(narrowest, MOST_DRAWN);
    while (found.length > MOST_DRAWN) found = drawable(narrowest *= WIDENED, MOST_DRAWN);
    if (found.length > FEW_DRAWN || narrowest === NARROWEST) return found;
    // Draws of a few stacks that are very deep, and equally wide, the outermost frames. A click on a frame shows more.
    narrowest /= WIDENED;
    for (let rows = MOST_DRAWN / 2; (found = drawable(narrowest, rows)).length > MOST_DRAWN;) rows /= 2;
    return found;
  }

  draw() {
    const { tree, zoomed } = this;
    const pieces = document.createDocumentFragment();
    const focused = document.activeElement.parentNode === this.place ? document.activeElement.node : undefined;
    const all = tree.values[zoomed] || 1;
    const width = this.place.clientWidth;
    let deepest = tree.depths[zoomed];
    this.drawn = new Map();
    // the nearest callers only: a stack may be as deep as its file says
    let callers = 0;
    this.width = width;
    for (let node = tree.parent[zoomed]; node >= 0 && callers < MOST_DRAWN; node = tree.parent[node], callers++) this.add(pieces, node, 0, 1, width);
    for (const node of this.nodesToDraw()) {
      const part = tree.values[node] / all;
      this.add(pieces, node, (tree.left[node] - tree.left[zoomed]) / all, part, part * width);
      deepest = Math.max(deepest, tree.depths[node]);
    }
    this.place.replaceChildren(pieces);
    this.place.style.height = ROW * (deepest + (this.skipsRoot ? 0 : 1)) + "px";
    if (focused !== undefined) this.focusOn(this.drawn.get(focused) || this.drawn.get(zoomed));
  }

  add(pieces, node, left, width, pixels) {
    if (node === 0 && this.skipsRoot) return;
    const { tree } = this;
    const box = make("div", "", pixels < LABELLED ? "" : fitted(this.looks.labelOf(node).slice(0, MOST_LETTERS_DRAWN), pixels - PADDING));
    this.paint(box, node, pixels >= LABELLED);
    box.style.left = 100 * left + "%";
    box.style.width = 100 * width + "%";
    box.style[this.isUpward ? "bottom" : "top"] = ROW * (tree.depths[node] - (this.skipsRoot ? 1 : 0)) + "px";
    box.tabIndex = node === this.zoomed ? 0 : -1;
    box.setAttribute("role", "treeitem");
    box.setAttribute("aria-level", tree.depths[node] + 1);
    box.setAttribute("aria-label", nameOf(tree.frames[node]).slice(0, MOST_LETTERS_DRAWN) + ", " + withShare(tree.values[node]));
    box.node = node;
    this.drawn.set(node, box);
    pieces.append(box);
  }

  paint(box, node, hasRoom) {
    const frame = this.tree.frames[node];
    const found = this.looks.foundOf(node);
    const fill = this.looks.fillOf(node);
    const isAbove = node < this.zoomed; // a caller of what is zoomed into: it only says where that is
    box.className = "frame " + (hasRoom ? "label " : "") + (isAbove ? "dim above" : colourOf(frame, found, fill !== ""));
    box.style.background = found === undefined && !isAbove ? fill : "";
    if (areLanguagesColoured()) setHue(box, typeOfFrame(frame)); else clearHue(box);
  }

  repaint() {
    for (const [node, box] of this.drawn) this.paint(box, node, box.textContent !== "");
  }

  zoomTo(node) {
    this.zoomed = node;
    this.draw();
  }

  focusOn(box) {
    if (!box) return;
    for (const other of this.place.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
    box.tabIndex = 0;
    box.focus();
  }

  // Returns the neighbour in the direction of a key; undefined where there is none.
  neighbour(node, key) {
    const { depths, parent, end } = this.tree;
    const isOutward = key === (this.isUpward ? "ArrowDown" : "ArrowUp");
    const isVertical = key === "ArrowUp" || key === "ArrowDown";
    let next = -1;
    if (isVertical) next = isOutward ? parent[node] : node + 1 < end[node] ? node + 1 : -1;
    if (key === "ArrowRight") next = end[node];
    if (key === "ArrowLeft") for (next = node - 1; depths[next] > depths[node];) next = parent[next];
    const isSibling = depths[next] === depths[node] && parent[next] === parent[node];
    return isVertical || isSibling ? this.drawn.get(next) : undefined;
  }

  // `onChosen` gets the node that is clicked, or entered by the keyboard; `onSeen` the node under the pointer or focus.
  listen(onChosen, onSeen) {
    const withNode = act => event => event.target.node !== undefined && act(event.target.node, event);
    this.place.addEventListener("click", withNode((node, event) => onChosen(node, event)));
    this.place.addEventListener("mouseover", withNode(onSeen));
    this.place.addEventListener("focusin", withNode(onSeen));
    this.place.addEventListener("keydown", event => this.onKey(event, onChosen));
  }

  onKey(event, onChosen) {
    const node = event.target.node;
    if (node === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = this.neighbour(node, event.key);
    if (next) {
      this.focusOn(next);
    } else if (event.key === "Enter" || event.key === " ") {
      onChosen(node);
    } else if (!event.key.startsWith("Arrow")) {
      return;
    }
    event.preventDefault(); // arrows and space would scroll
  }
}

// --- the flame graph ---

const graph = new Chart("chart", {
  labelOf: node => node === 0 ? "all (" + shown.headline + ")" : shortOf(shown.frames[node]) + (shown.folds?.[node] > 1 ? " \u00d7" + shown.folds[node] : ""),
  foundOf: node => isFound ? isFound(node) : undefined,
  // fills wall time by its states, and two profiles by their difference
  fillOf: node => isFound ? "" : shown.states ? stripesOf(node) : shown.changes ? fillOfChange(node) : "",
});

function zoomTo(node) {
  graph.zoomTo(node);
  if (graph.isUpward) element("pane").scrollTop = element("pane").scrollHeight;
  element("reset").disabled = node === 0;
}

// Draws the outermost callers at the bottom, as flames, or at the top.
function setUpward(isUpward) {
  graph.isUpward = isUpward;
  element("flip").setAttribute("aria-pressed", isUpward);
  element("pane").classList.toggle("upward", isUpward);
}
