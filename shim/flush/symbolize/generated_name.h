/* What the name of a piece of generated code says, which its compiler has written as one text.
 *
 * Each runtime has a form of its own, by which its names are known; the frame has the type that
 * OpenTelemetry's profile.frame.type has for that runtime then, and is "native" otherwise:
 *
 *   JS:*sum /app/a.js:3:10              V8 (LazyCompile:, Function:, Script:, Eval: too), v8js
 *   py::Account.pay:/app/bank.py        CPython, cpython
 *   $lists:map/2                        Erlang, beam; without $ only where beam.smp is loaded
 *   JIT$Account::pay, TRACE-7$pay$12    PHP, php
 *   void [Shop] Shop.Bank::Pay()[Tier1] .NET, dotnet
 *   int shop.Bank.pay(long)             HotSpot, jvm: only where libjvm.so is loaded
 *   Lshop/Bank;::pay                    perf-map-agent, jvm
 *
 * How far a function is optimised is left out: the function is one, in each of its forms. What
 * tells overloads apart stays, in system_name. Context: flush.
 */
#ifndef OTELPROF_GENERATED_NAME_H
#define OTELPROF_GENERATED_NAME_H

#include "arena.h"
#include "symbolize.h"

/* Of a name, its end included; what is longer is cut. */
enum { MAX_GENERATED_NAME = 2048 };

/* Whose process it is, where names alone do not tell. */
enum runtime { RUNTIME_ANY, RUNTIME_JVM, RUNTIME_BEAM };

struct generated_name {
    struct symbol_line line;
    const char *type; /* profile.frame.type */
};

/* Takes `text`, which is not empty, apart. The strings live as long as the arena; without memory
 * they are "", but for the function, which is never NULL. */
void generated_name_read(struct arena *arena, const char *text, enum runtime runtime,
                         struct generated_name *name);

#endif
