/* What libc believes about the threads of this process.
 *
 * While there is one, fork() and malloc() take no locks: a signal handler may fork wherever it has
 * interrupted the program, and one that calls exit() mostly gets through. Our helper makes it two,
 * for good; the same handler then waits for the lock of the malloc that it interrupted, for ever.
 * So where such a handler forks, or ends the process, libc is told that the thread is alone: if the
 * kernel counts no other thread, or the helper's, and that sleeps and is kept asleep. In any other
 * case both would take and leave libc's locks without a wake, the loader's among them, and exit()
 * would wait for ever for one that the helper has left. A thread that ends is there until the
 * kernel counts it no more. The child of that fork lists the helper among
 * its threads for good (libc strikes it off only where it knows of threads): a main thread of it
 * that ends alone ends it without exit handlers. Hence nowhere else.
 */
#ifndef OTELPROF_LIBC_THREADS_H
#define OTELPROF_LIBC_THREADS_H

#include <stdbool.h>

/* Looks for what libc keeps it in. Context: calm, at start. */
void libc_threads_finish_init(void);

/* How many threads the kernel counts; 0: it does not say. errno is preserved.
 * Async-signal-safe: yes. */
unsigned libc_threads_count(void);

/* Tells libc that there is one thread, or more than one. The first only while no other runs code of
 * libc's, or will before the second. A thread that is created changes it. Async-signal-safe:
 * yes. */
void libc_threads_are(bool single);

#endif
