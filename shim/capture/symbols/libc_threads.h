/* libc's own count of the threads of this process: one, or more.
 *
 * While there is one, fork() and malloc() take no locks: a signal handler may fork wherever it has
 * interrupted the program, and one that calls exit() mostly gets through. The profiler's helper
 * makes it two, for good; the same handler then waits for ever for the lock of the malloc that it
 * interrupted. So if such a handler forks, or ends the process, the profiler sets libc to
 * single-threaded. It does so only if the kernel counts no other thread, or only the helper, and
 * the helper sleeps and is kept asleep. In any other case both threads would take and release
 * libc's locks without a wake, the loader's among them, and exit() would wait for ever for one that
 * the helper has released. A thread that ends counts until the kernel no longer counts it. The
 * child of that fork lists the helper among its threads for good (libc removes it only if it knows
 * of threads), so a main thread that ends alone there ends the child without exit handlers. For
 * that reason it is done nowhere else.
 */
#ifndef OTELPROF_LIBC_THREADS_H
#define OTELPROF_LIBC_THREADS_H

#include <stdbool.h>

/* Finds libc's variable. Context: calm, at start. */
void libc_threads_finish_init(void);

/* Returns the kernel's count of threads; 0: not known. errno is preserved. Async-signal-safe:
 * yes. */
unsigned libc_threads_count(void);

/* Sets libc to one thread, or to more than one. `true` is allowed only while no other thread runs
 * code of libc, or will do so before `false` is set. Creating a thread changes it, too.
 * Async-signal-safe: yes. */
void libc_set_single_threaded(bool single);

#endif
