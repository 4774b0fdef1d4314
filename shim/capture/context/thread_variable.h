/* Lists the thread-local variables in which programs publish a thread's context, and finds their
 * addresses in each thread.
 *
 * A variable lies at a fixed offset from the thread pointer (static TLS: variables of the
 * executable, of libraries loaded with it, and of later ones for which there was room), or in a
 * block that the dynamic thread vector leads to. The loader's relocations in the objects that use
 * the variable show which of the two (variable_search.h). The vector alone is not enough: it has no
 * entry for an object that dlopen has loaded into static TLS and that uses TLS descriptors. There
 * are two copies of the table. Calm code, one writer at a time, writes the copy that is not in use
 * and then makes it the one in use; it does not write an unchanged table. Signal handlers read the
 * copy in use: a handler that interrupts a change reads the old table. No reader waits: it copies
 * an entry, then checks that no writer has begun to write the same copy (that takes two changes),
 * and otherwise reads again. The address of a dynamic variable comes from glibc's vector, which
 * needs no check. The variable's content comes from the program and must be checked
 * (foreign_memory.h).
 */
#ifndef OTELPROF_THREAD_VARIABLE_H
#define OTELPROF_THREAD_VARIABLE_H

#include "foreign_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds the variables. Most programs have one; four suffice for several languages in a program, or
 * for plug-ins with variables of their own. */
enum { THREAD_VARIABLES = 4 };

struct thread_variable {
    uint64_t source; /* CONTEXT_*, one bit */
    uint64_t may_go; /* its object may be unloaded: modules_hold() */
    /* the object's module number in the thread vector; 0: the variable is in static TLS */
    uint64_t module;
    int64_t offset;  /* offset from the thread pointer, or, with a module, in its block */
    int64_t block;   /* offset of the object's block from the thread pointer; with a module, 0 */
    uint64_t bytes;  /* size of that block */
    uint64_t object; /* program headers of the object that defines the variable: they identify it */
    /* with a module: a thread's vector of an earlier generation does not have the block */
    uint64_t generation;
};
enum { THREAD_VARIABLE_WORDS = sizeof(struct thread_variable) / 8 };

struct thread_variables {
    _Atomic uint32_t version; /* version of the table in use, tables[version % 2] */
    _Atomic uint32_t writing; /* the last version whose writing has begun */
    struct thread_variable_table {
        _Atomic uint32_t count;
        _Atomic uint64_t words[THREAD_VARIABLES][THREAD_VARIABLE_WORDS];
    } tables[2];
};

/* Returns the number of variables. Cost: two loads. Context: any. Async-signal-safe: yes. */
static inline uint32_t thread_variables_count(const struct thread_variables *variables) {
    /* pairs with the release at the end of thread_variables_set() */
    const uint32_t version = atomic_load_explicit(&variables->version, memory_order_acquire);
    return atomic_load_explicit(&variables->tables[version % 2].count, memory_order_relaxed);
}

static inline bool thread_variables_any(const struct thread_variables *variables) {
    return thread_variables_count(variables) != 0;
}

/* Copies the entry with that number. Returns false if there is none, or if changes have overtaken
 * the reader several times. Context: any. Async-signal-safe: yes. */
bool thread_variables_get(const struct thread_variables *variables, uint32_t number,
                          struct thread_variable *variable);

/* Returns the address of the calling thread's variable, which has 8 readable bytes; 0: the thread
 * has no such variable yet. `*block` is the object's whole TLS block in this thread, also readable.
 * Cost: 2 ns. Context: signal. Async-signal-safe: yes. */
uintptr_t thread_variable_address(const struct thread_variable *variable,
                                  struct memory_range *block);

/* Returns the address of the variable of the thread with thread pointer `pointer`; 0: the thread's
 * vector has no block for it yet, or cannot be read. The memory may be unmapped at any time.
 * Context: the helper. */
uintptr_t thread_variable_address_of(const struct thread_variable *variable, uintptr_t pointer);

/* Replaces the table, unless it is unchanged. In a forked child, whose parent may have been
 * writing, the copy in use is complete. Context: calm; one writer at a time. */
void thread_variables_set(struct thread_variables *variables, const struct thread_variable *list,
                          uint32_t count);

#endif
