/* Reads and sets whether libc takes this process for single-threaded.
 *
 * With one thread, fork() and malloc() take no locks: so a signal handler may fork wherever it has
 * interrupted the program, and exit() in a handler mostly succeeds. Once the profiler's helper
 * runs, the same handler waits for ever for the lock of the malloc that it interrupted. So if such
 * a handler forks, or ends the process, the profiler sets libc to single-threaded. It does so only
 * if the kernel counts no other thread, or only the helper, and keeps the helper asleep meanwhile.
 * Otherwise both threads would release libc's locks without a wake, the loader's among them, and
 * exit() could wait for ever for a lock that the helper has released. A thread that is ending
 * counts as long as the kernel counts it.
 *
 * The profiler makes this change nowhere else, because it has a price. In the child of such a fork
 * libc keeps the helper in its list of threads for ever, because libc, set to single-threaded, does
 * not remove other threads from the list. If the child's main thread then ends by pthread_exit, the
 * child ends without exit handlers.
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
 * code of libc, or will do so before `false` is set. Creating a thread sets libc to more than one,
 * too. Does nothing before glibc 2.32. Async-signal-safe: yes. */
void libc_set_single_threaded(bool single);

#endif
