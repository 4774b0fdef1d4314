// Runs on node, bun and deno. Without an argument: functions that call each other, objects and texts, which are compiled.
// With an argument: the runtime's own code, which is linked into it.
"use strict";

function fibonacci(n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

function matrices(size) {
  const a = new Float64Array(size * size).fill(1.5);
  const product = new Float64Array(size * size);
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      let sum = 0;
      for (let k = 0; k < size; k++) sum += a[row * size + k] * a[k * size + column];
      product[row * size + column] = sum;
    }
  }
  return product[size];
}

function texts(count) {
  const people = [];
  for (let i = 0; i < count; i++) people.push({ name: "n" + (i * 7919) % count, tags: ["a", i], at: { x: i } });
  const copy = JSON.parse(JSON.stringify(people));
  copy.sort((left, right) => (left.name < right.name ? -1 : 1));
  return copy.map(it => it.name.replace(/[0-9]+/g, digits => digits.length)).join("").length;
}

class Tree {
  constructor(depth) {
    this.left = depth ? new Tree(depth - 1) : null;
    this.right = depth ? new Tree(depth - 1) : null;
  }

  count() {
    return 1 + (this.left ? this.left.count() + this.right.count() : 0);
  }
}

function ofCompiledCode() {
  return fibonacci(25) + matrices(120) + texts(4000) + new Tree(13).count();
}

function ofRuntime({ createHash }, { gzipSync, gunzipSync }) {
  const text = JSON.stringify(Array.from({ length: 5000 }, (_, i) => ({ name: "n" + i, at: i })));
  const packed = gzipSync(text);
  const hash = createHash("sha256").update(gunzipSync(packed)).digest("hex");
  return JSON.parse(text).length + text.match(/"n[0-9]*7"/g).length + text.normalize("NFD").split(",").sort().length + hash.length;
}

async function main(argument) {
  const libraries = argument ? [await import("node:crypto"), await import("node:zlib")] : [];
  const { cpuUsage } = await import("node:process");
  let sum = 0;
  while (cpuUsage().user < 5e6) sum += argument ? ofRuntime(...libraries) : ofCompiledCode();
  console.log(sum > 0 ? "done" : "");
}

main(process.argv[2]);
