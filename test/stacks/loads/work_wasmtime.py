"""Runs WebAssembly that Cranelift compiles. With an argument its names are in a perf map."""

import sys
import time

import wasmtime

TEXT = """
(module
  (func $fibonacci (export "fibonacci") (param i32) (result i32)
    local.get 0  i32.const 2  i32.lt_s
    if (result i32)
      local.get 0
    else
      local.get 0  i32.const 1  i32.sub  call $fibonacci
      local.get 0  i32.const 2  i32.sub  call $fibonacci
      i32.add
    end)
  (func $spin (param $times i32) (result i32) (local $sum i32)
    loop $again
      local.get $sum  i32.const 1103515245  i32.mul  i32.const 12345  i32.add  local.set $sum
      local.get $times  i32.const 1  i32.sub  local.tee $times
      br_if $again
    end
    local.get $sum)
  (func (export "work") (result i32)
    i32.const 27  call $fibonacci
    i32.const 20000000  call $spin
    i32.add))
"""


def main():
    config = wasmtime.Config()
    if sys.argv[1:]:
        config.profiler = sys.argv[1]
    store = wasmtime.Store(wasmtime.Engine(config))
    work = wasmtime.Instance(store, wasmtime.Module(store.engine, TEXT), []).exports(store)["work"]
    end = time.process_time() + 5
    while time.process_time() < end:
        work(store)


main()
print("done")
