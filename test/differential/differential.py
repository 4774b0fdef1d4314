"""Compares our unwinder with libunwind: over every byte of the code of large binaries (rules), and at real
instruction boundaries of running programs (live.so)."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from profiled import BUILD  # noqa: E402

RULES = BUILD / "test/differential/rules"
LIVE = BUILD / "test/differential/live.so"
JIT = {"node"}  # code made at run time: libunwind has no description of it, so neither is the truth there


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def rust_binary():
    """Returns the compiler itself: rustup keeps it in its lib, Debian in a folder of the machine's there."""
    sysroot = Path(output_of("rustc", "--print", "sysroot"))
    drivers = sorted(sysroot.glob("lib/**/librustc_driver-*.so"))
    return drivers[0] if drivers else Path(shutil.which("rustc")).resolve()


def node_binary():
    """Debian 13's node is a small program beside libnode."""
    node = shutil.which("node")
    library = re.search(r"/\S*libnode\.so\S*", output_of("ldd", node))
    return library[0] if library else node


def binaries():
    """Returns name -> file, of the large binaries."""
    found = {
        "libc": "/lib/x86_64-linux-gnu/libc.so.6",
        "libstdc++": "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "libcrypto": "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
        "python": "/usr/bin/python3",
        "node": node_binary(),
        "cc1plus": output_of("gcc", "-print-prog-name=cc1plus"),
        "rust": rust_binary(),
    }
    return {name: os.path.realpath(path) for name, path in found.items()}


def compare_rules(path, stride):
    """Returns the tally of one file, with the first differences as "examples"."""
    done = subprocess.run([RULES, path, str(stride)], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert lines, f"{RULES} {path} ended with {done.returncode}"
    return {**json.loads(lines[-1]), "examples": lines[:-1]}


PYTHON = """
import json, re, sys
text = "".join(f'def f{i}(x): return [x + {i}]\\n' for i in range(200))
for _ in range(int(sys.argv[1])):
    data = json.loads(json.dumps([{"a": i, "b": str(i)} for i in range(2000)]))
    sorted(data, key=lambda x: x["b"])
    re.sub("[0-9]+", lambda m: m.group() * 2, "abc123 " * 2000)
    compile(text, "f", "exec")
"""
PERL = """
my %h;
for (1 .. 60000 * $ARGV[0]) {
    $h{$_ % 1000} .= "x$_";
    $s = join(",", sort { $a <=> $b } (3, 1, 2, $_)) if $_ % 3 == 0;
    $s =~ s/([0-9]+),/<$1>/g;
}
print length($s);
"""
NODE = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
for (let k = 0; k < Number(process.argv[1]); k++) {
    let m = new Map();
    for (let i = 0; i < 20000; i++) m.set("k" + i, { a: i });
    "abc def ghi ".repeat(2000).replace(/[aeiou]/g, (x) => x.toUpperCase());
    [...Array(50000).keys()].sort((a, b) => b - a);
    fib(22);
}
"""
CPP = """
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
int main(int argc, char **argv) {
    std::map<std::string, std::vector<int>> all;
    for (int i = 0; i < argc; i++) all[argv[i]].push_back(i);
    std::regex word("[a-z]+(b|c)*");
    for (auto &entry : all)
        if (std::regex_match(entry.first, word)) std::cout << entry.first;
}
"""
RUST = """
use std::collections::HashMap;
fn depth(n: u64, words: &mut HashMap<u64, String>) -> u64 {
    let text = format!("{n:x}-{}", words.len());
    words.insert(n % 977, text.clone());
    if n == 0 { text.len() as u64 } else { depth(n - 1, words) + 1 }
}
fn main() {
    let rounds: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut words = HashMap::new();
    let mut sum = 0;
    for round in 0..rounds * 40 {
        sum += depth(200, &mut words);
        let mut values: Vec<String> = words.values().cloned().collect();
        values.sort_by(|a, b| b.cmp(a));
        sum += values[(round % 7) as usize].len() as u64;
    }
    println!("{sum}");
}
"""


def programs(folder, rounds):
    """Returns name -> (command, executable's name in the report)."""
    (folder / "big.cpp").write_text(CPP)
    (folder / "deep.rs").write_text(RUST)
    subprocess.run(["rustc", "-O", "-o", folder / "deep", folder / "deep.rs"], check=True)
    n = str(rounds)
    compile_cpp = ["g++", "-O2", "-std=c++17", "-c", str(folder / "big.cpp"), "-o", str(folder / "big.o")]
    return {
        "python": (["/usr/bin/python3", "-c", PYTHON, n], "python"),
        "cc1plus": (compile_cpp, "cc1plus"),
        "perl": (["/usr/bin/perl", "-e", PERL, n], "perl"),
        "rust": ([str(folder / "deep"), n], "deep"),
        "node": (["node", "-e", NODE, n], "node"),
    }


# --- programs whose unwind tables our walker does not see ---

FRAMES = {
    "frame pointers": ["-fno-omit-frame-pointer"],
    "in leaves none": ["-fno-omit-frame-pointer", "-momit-leaf-frame-pointer"],
    "no frame pointers": ["-fomit-frame-pointer"],
}
LANGUAGES = {"c": (["gcc", "clang"], "2000"), "cpp": (["g++", "clang++"], "300")}


def builds():
    """Returns (language, compiler, optimization, frames) of each build that an installed compiler makes."""
    return [
        (language, compiler, level, frames)
        for language, (compilers, _) in LANGUAGES.items() for compiler in compilers if shutil.which(compiler)
        for level in ("-O0", "-O1", "-O2", "-O3") for frames in FRAMES
    ]


def compare_without_tables(build, folder, limit, percent):
    """Returns the tally of one of the builds; `percent` of its functions are hidden from our walker."""
    language, compiler, level, frames = build
    executable = f"hidden_{compiler}{level}_{frames.replace(' ', '_')}"
    source = Path(__file__).parent / "programs" / f"without_tables.{language}"
    subprocess.run([compiler, "-w", level, *FRAMES[frames], source, "-o", folder / executable], check=True)
    hide = {
        "DIFFERENTIAL_HIDE": executable, "DIFFERENTIAL_HIDE_PERCENT": str(percent),
        "DIFFERENTIAL_BURST": "2000", "DIFFERENTIAL_PERIOD_US": "1000",
    }
    command = [str(folder / executable), LANGUAGES[language][1]]
    return compare_live(executable, command, executable, folder, limit, hide)


BURST = 400  # instructions in a row


def compare_live(name, command, executable, folder, limit, more=None):
    """Returns the tally of the process of that executable, with "examples"; `more` is added to its environment."""
    report = folder / f"{name}.report"
    report.unlink(missing_ok=True)
    environment = {
        **os.environ, "LD_PRELOAD": str(LIVE), "DIFFERENTIAL_REPORT": str(report),
        "DIFFERENTIAL_BURST": str(BURST), "DIFFERENTIAL_PERIOD_US": "5000",
        "DIFFERENTIAL_LIMIT": str(limit), **(more or {}),
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{name} ended with {done.returncode}: {done.stderr[-500:]}"
    lines = report.read_text().splitlines()
    tallies = [json.loads(line) for line in lines if line.startswith("{")]
    found = [t for t in tallies if executable in os.path.basename(t["executable"])]
    assert len(found) == 1, f"{name}: reports of {[t['executable'] for t in tallies]}"
    return {**found[0], "examples": [line for line in lines if not line.startswith("{")]}
