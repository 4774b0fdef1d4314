"use strict";
// Lays out trees of calls. They arrive as columns, each node after its caller. Here they are put in preorder, the widest of
// siblings first, each with all below it. Everything is a typed array: a large file has a million nodes.

// Returns the value of each node with all below it.
function summed(parents, own, also) {
  const sums = new Float64Array(own);
  if (also) also.forEach((value, node) => { sums[node] += value; });
  for (let node = sums.length - 1; node > 0; node--) sums[parents[node]] += sums[node];
  return sums;
}

// Ranks functions by name, for siblings that are equally wide.
function ranksOf() {
  const order = data.frames.map((_, frame) => frame).sort((a, b) => data.frames[a][0] < data.frames[b][0] ? -1 : 1);
  const ranks = new Int32Array(order.length);
  order.forEach((frame, rank) => { ranks[frame] = rank; });
  return ranks;
}

function sortSiblings(list, begin, end, isBefore) {
  if (end - begin > 12) {
    list.subarray(begin, end).sort((a, b) => isBefore(a, b) ? -1 : 1);
    return;
  }
  for (let i = begin + 1; i < end; i++) {
    const node = list[i];
    let at = i;
    for (; at > begin && isBefore(node, list[at - 1]); at--) list[at] = list[at - 1];
    list[at] = node;
  }
}

// Returns the nodes below each node that has a value: those of a node are in `list` from `begin[node]` to `begin[node
// + 1]`.
function childrenOf(parents, frames, values) {
  const begin = new Int32Array(parents.length + 1);
  for (let node = 1; node < parents.length; node++) if (values[node] > 0) begin[parents[node] + 1]++;
  for (let node = 0; node < parents.length; node++) begin[node + 1] += begin[node];
  const list = new Int32Array(begin[parents.length]);
  const next = begin.slice();
  for (let node = 1; node < parents.length; node++) if (values[node] > 0) list[next[parents[node]]++] = node;
  const ranks = data.ranks ??= ranksOf();
  const isBefore = (a, b) => values[a] !== values[b] ? values[a] > values[b] : ranks[frames[a]] > ranks[frames[b]];
  for (let node = 0; node < parents.length; node++) {
    if (begin[node + 1] - begin[node] > 1) sortSiblings(list, begin[node], begin[node + 1], isBefore);
  }
  return { begin, list };
}

// Returns how many nodes each node has below it, itself included.
function sizesOf(parents, values) {
  const sizes = new Int32Array(parents.length).fill(1);
  for (let node = parents.length - 1; node > 0; node--) if (values[node] > 0) sizes[parents[node]] += sizes[node];
  return sizes;
}

// Returns the place of each node in preorder, and the nodes in that order.
function placed(parents, frames, values) {
  const { begin, list } = childrenOf(parents, frames, values);
  const sizes = sizesOf(parents, values);
  const places = new Int32Array(parents.length);
  const order = new Int32Array(sizes[0]);
  for (let node = 0; node < parents.length; node++) {
    if (node && !(values[node] > 0)) continue;
    order[places[node]] = node;
    let place = places[node] + 1;
    for (let i = begin[node]; i < begin[node + 1]; i++) {
      places[list[i]] = place;
      place += sizes[list[i]];
    }
  }
  return { sizes, places, order };
}

const taken = (column, order) => {
  const result = new column.constructor(order.length);
  for (let i = 0; i < order.length; i++) result[i] = column[order[i]];
  return result;
};

// Returns a tree with what is drawn of it: depths, frames, values, own, objects, parent, end (the index after the last node
// below each), left (each node's left edge), and `order`, the columns' nodes in the tree's order.
function laidOut({ parents, frames, own, unseen, objects, unseenObjects, folds }) {
  const sums = summed(parents, own, unseen);
  const { sizes, places, order } = placed(parents, frames, sums);
  const count = order.length;
  const tree = { order, frames: taken(new Int32Array(frames), order), own: taken(new Float64Array(own), order), values: taken(sums, order) };
  if (folds) tree.folds = order.map(node => folds[node]);
  tree.parent = new Int32Array(count).fill(-1);
  tree.depths = new Int32Array(count);
  tree.end = new Int32Array(count);
  tree.left = new Float64Array(count);
  const next = new Float64Array(count); // where the next node below each begins
  for (let node = 0; node < count; node++) {
    tree.end[node] = node + sizes[order[node]];
    if (!node) continue;
    const parent = tree.parent[node] = places[parents[order[node]]];
    tree.depths[node] = tree.depths[parent] + 1;
    next[node] = tree.left[node] = next[parent];
    next[parent] += tree.values[node];
  }
  if (objects) {
    tree.ownObjects = taken(new Float64Array(objects), order);
    tree.objects = taken(summed(parents, objects, unseenObjects), order);
  }
  return tree;
}

// Returns [frame, self, total] of each function, with objects if they are counted; recursion counts once.
function functionsOf(tree) {
  const columns = [0, 1, 2, 3].map(() => new Float64Array(data.frames.length));
  const [own, total, ownObjects, objects] = columns;
  const within = new Int32Array(data.frames.length);
  const open = []; // the frame at each depth, without the root's
  const found = new Set();
  for (let node = 1; node < tree.frames.length; node++) {
    const frame = tree.frames[node];
    while (open.length >= tree.depths[node]) within[open.pop()]--;
    const isOutermost = within[frame]++ === 0;
    open.push(frame);
    found.add(frame);
    own[frame] += tree.own[node];
    if (isOutermost) total[frame] += tree.values[node];
    if (!tree.objects) continue;
    ownObjects[frame] += tree.ownObjects[node];
    if (isOutermost) objects[frame] += tree.objects[node];
  }
  const width = tree.objects ? 4 : 2;
  return [...found].map(frame => [frame, ...columns.slice(0, width).map(column => column[frame])]);
}

// --- trees made of parts of others ---

// Grows a tree: `below` finds or makes the node that a frame has below another.
class Growing {
  constructor(frame) {
    this.parents = [-1];
    this.frames = [frame];
    this.own = [0];
    this.slots = new Int32Array(1 << 10).fill(-1); // nodes, by a hash of the caller's node and the frame
  }

  slotOf(parent, frame) {
    const mask = this.slots.length - 1;
    let slot = (Math.imul(parent, 0x9E3779B1) ^ Math.imul(frame, 0x85EBCA6B)) >>> 7 & mask;
    while (this.slots[slot] >= 0 && (this.parents[this.slots[slot]] !== parent || this.frames[this.slots[slot]] !== frame)) {
      slot = slot + 1 & mask;
    }
    return slot;
  }

  below(parent, frame) {
    const slot = this.slotOf(parent, frame);
    if (this.slots[slot] >= 0) return this.slots[slot];
    const made = this.slots[slot] = this.frames.length;
    this.parents.push(parent);
    this.frames.push(frame);
    this.own.push(0);
    if (this.frames.length * 2 > this.slots.length) this.rehash();
    return made;
  }

  rehash() {
    this.slots = new Int32Array(this.slots.length * 4).fill(-1);
    for (let node = 1; node < this.frames.length; node++) this.slots[this.slotOf(this.parents[node], this.frames[node])] = node;
  }
}

// Returns the tree of stacks, and the node of each stack.
function treeOfStacks(wanted) {
  const { sizes, frames } = data.stacks;
  if (!data.stacks.ends) { // where the frames of each end, the outermost last
    data.stacks.ends = new Int32Array(sizes.length);
    for (let stack = 0, end = 0; stack < sizes.length; stack++) data.stacks.ends[stack] = end += sizes[stack];
  }
  const tree = new Growing(0);
  const nodes = new Int32Array(sizes.length).fill(-1);
  for (const stack of wanted) {
    if (nodes[stack] >= 0) continue;
    const end = data.stacks.ends[stack];
    let node = 0;
    for (let i = end - 1; i >= end - sizes[stack]; i--) node = tree.below(node, frames[i]);
    nodes[stack] = node;
  }
  return { tree, nodes };
}
