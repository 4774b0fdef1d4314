/* Parses the name of a piece of generated code, which its compiler has written as one text.
 *
 * Each runtime writes names in a form of its own, by which they are recognized. The frame then has
 * that runtime's value of OpenTelemetry's profile.frame.type; any other frame has "native":
 *
 *   JS:*sum /app/a.js:3:10              V8 (LazyCompile:, Function:, Script:, Eval: too), v8js
 *   py::Account.pay:/app/bank.py        CPython, cpython
 *   $lists:map/2                        Erlang, beam; without $ only where beam.smp is loaded
 *   JIT$Account::pay, TRACE-7$pay$12    PHP, php
 *   void [Shop] Shop.Bank::Pay()[Tier1] .NET, dotnet
 *   int shop.Bank.pay(long)             HotSpot, jvm: only where libjvm.so is loaded
 *   Lshop/Bank;::pay                    perf-map-agent, jvm
 *
 * The optimisation tier is left out, so that all forms of a function count as one. The parts that
 * distinguish overloads stay in system_name. Context: flush.
 */
#ifndef OTELPROF_GENERATED_NAME_H
#define OTELPROF_GENERATED_NAME_H

#include "arena.h"
#include "symbolize.h"

/* Bounds the size of a name, its end included; a longer name is cut. */
enum { MAX_GENERATED_NAME = 2048 };

/* Names the runtime of the process, for names that are ambiguous. */
enum runtime { RUNTIME_ANY, RUNTIME_JVM, RUNTIME_BEAM };

struct generated_name {
    struct symbol_line line;
    const char *type; /* profile.frame.type */
};

/* Parses `text`, which is not empty. The strings live as long as the arena. None is NULL: without
 * memory they are "", or the function is "[anonymous]". */
void generated_name_read(struct arena *arena, const char *text, enum runtime runtime,
                         struct generated_name *name);

#endif
