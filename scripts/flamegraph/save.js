"use strict";
// Saves the profile as it is shown (filtered, without removed stacks) in other programs' formats.

// Calls `each` with the frames of every stack, the outermost first, and its own value and number of objects.
function eachStack(each) {
  const path = [];
  for (let node = 1; node < shown.frames.length; node++) {
    path.length = shown.depths[node] - 1;
    path.push(shown.frames[node]);
    if (shown.own[node]) each(path, shown.own[node], shown.ownObjects?.[node] ?? 0);
  }
}

const SPEEDSCOPE_UNITS = { seconds: "seconds", duration: "seconds", bytes: "bytes", count: "none" };

function asSpeedscope() {
  const samples = [], weights = [];
  eachStack((path, own) => {
    samples.push([...path]);
    weights.push(own);
  });
  const frames = data.frames.map(([name, module]) => data.modules[module] ? { name, file: data.modules[module] } : { name });
  const profile = { type: "sampled", name: shown.title, unit: SPEEDSCOPE_UNITS[shown.unit] ?? "none", startValue: 0, endValue: shown.values[0], samples, weights };
  return JSON.stringify({ $schema: "https://www.speedscope.app/file-format-schema.json", exporter: "otelprof", name: data.title, shared: { frames }, profiles: [profile] });
}

function asCollapsed() {
  const scale = shown.unit === "seconds" || shown.unit === "duration" ? 1e9 : 1; // whole numbers: nanoseconds
  const lines = [];
  eachStack((path, own) => lines.push(path.map(frame => data.frames[frame][0].replace(/[;\n]/g, " ")).join(";") + " " + Math.round(own * scale)));
  return lines.join("\n") + "\n";
}

// --- pprof: https://github.com/google/pprof/blob/main/proto/profile.proto ---

class Wire {
  constructor() { this.bytes = []; }

  varint(value) {
    if (value < 128) return this.bytes.push(Number(value));
    if (value < 2 ** 31) {
      let rest = Number(value);
      for (; rest >= 128; rest >>>= 7) this.bytes.push(rest & 127 | 128);
      return this.bytes.push(rest);
    }
    for (let rest = BigInt(value); ; rest >>= 7n) {
      if (rest < 128n) return this.bytes.push(Number(rest));
      this.bytes.push(Number(rest & 127n) | 128);
    }
  }

  number(field, value) {
    if (!value) return;
    this.varint(field * 8);
    this.varint(value);
  }

  part(field, bytes) {
    this.varint(field * 8 + 2);
    this.varint(bytes.length);
    for (const byte of bytes) this.bytes.push(byte);
  }

  packed(field, values) {
    const inner = new Wire();
    for (const value of values) inner.varint(value);
    this.part(field, inner.bytes);
  }

  message(field, write) {
    const inner = new Wire();
    write(inner);
    this.part(field, inner.bytes);
  }
}

function asPprof() {
  const wire = new Wire(), strings = new Map([["", 0]]), used = new Set();
  const textAt = text => {
    if (!strings.has(text)) strings.set(text, strings.size);
    return strings.get(text);
  };
  const isTime = shown.unit === "seconds" || shown.unit === "duration";
  const type = (name, unit) => wire.message(1, it => {
    it.number(1, textAt(name));
    it.number(2, textAt(unit));
  });
  if (shown.ownObjects) type(shown.noun, "count");
  type(shown.kind, isTime ? "nanoseconds" : shown.unit === "bytes" ? "bytes" : "count");
  eachStack((path, own, objects) => wire.message(2, it => {
    for (const frame of path) used.add(frame);
    it.packed(1, [...path].reverse().map(frame => frame + 1));
    const value = Math.round(isTime ? own * 1e9 : own);
    it.packed(2, shown.ownObjects ? [Math.round(objects), value] : [value]);
  }));
  const modules = new Set([...used].map(frame => data.frames[frame][1]).filter(module => data.modules[module]));
  for (const module of modules) {
    wire.message(3, it => {
      it.number(1, module + 1);
      it.number(5, textAt(data.modules[module]));
      it.number(7, 1); // it has functions: pprof searches no file
    });
  }
  for (const frame of used) {
    const [name, module] = data.frames[frame];
    wire.message(4, it => {
      it.number(1, frame + 1);
      if (modules.has(module)) it.number(2, module + 1);
      it.message(4, line => line.number(1, frame + 1));
    });
    wire.message(5, it => {
      it.number(1, frame + 1);
      it.number(2, textAt(name));
      it.number(3, textAt(name));
    });
  }
  for (const text of strings.keys()) wire.part(6, new TextEncoder().encode(text));
  return Uint8Array.from(wire.bytes);
}

// --- the menu ---

const FORMATS = [["speedscope", ".speedscope.json", asSpeedscope], ["pprof", ".pb", asPprof], ["collapsed stacks", ".collapsed.txt", asCollapsed]];

function saveAs(ending, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content]));
  link.download = (data.title.split("/").at(-1).replace(/[^\w.-]+/g, "_").slice(0, 80) || "profile") + "." + shown.kind + ending;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function listenToSave() {
  element("save-menu").replaceChildren(...FORMATS.map(([title, ending, write]) => {
    const button = make("button", "", title);
    button.type = "button";
    button.setAttribute("role", "menuitem");
    button.addEventListener("click", () => {
      closeMenu();
      saveAs(ending, write());
    });
    return button;
  }));
}
