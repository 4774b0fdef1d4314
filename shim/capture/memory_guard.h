/* Leaving a library at the moment when it finds no memory.
 *
 * Some of what the helper uses ends the process when malloc returns NULL: libdw calls exit(1),
 * glibc aborts where a library's thread-local variable needs room, others use the pointer. So while
 * the helper is inside such a library, under a guard, an allocation that fails does not return: the
 * work is left by longjmp. What it had made is abandoned, never freed and never looked at again.
 * Only for libraries that hold no lock which anybody else might want.
 */
#ifndef OTELPROF_MEMORY_GUARD_H
#define OTELPROF_MEMORY_GUARD_H

#include <stdbool.h>

/* Runs work(arg). false: memory ran out, and the work was left where it was. Not nested.
 * Context: the helper thread. */
bool memory_guard_run(void (*work)(void *arg), void *arg);

/* An allocation has failed: does not return if the calling thread is under a guard.
 * Context: any thread, in an allocator's hook. */
void memory_guard_leave(void);

#endif
