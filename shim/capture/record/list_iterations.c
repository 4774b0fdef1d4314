#include "list_iterations.h"

#include "kernel/wait.h"
#include "symbols/loader_state.h"
#include "thread_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Bounds the waits, in rounds of wait.h: 100 ms or more in general, and 5 s for a fork, because its
 * child could block for ever. */
enum { WAIT_ROUNDS = 2000, FORK_ROUNDS = 100000 };

static struct list_iterations {
    _Atomic uint32_t iterating; /* number of threads that iterate */
    _Atomic uint32_t forking;   /* number of threads that fork */
} list_iterations;

/* Pairs with list_iterations_begin_fork(): at least one of the two sees the other. */
static bool try_begin_iteration(void *unused) {
    (void)unused;
    atomic_fetch_add(&list_iterations.iterating, 1);
    if (atomic_load(&list_iterations.forking) == 0)
        return true;
    atomic_fetch_sub(&list_iterations.iterating, 1);
    return false;
}

void list_iteration_begin(void) {
    const bool is_within =
        /* this call has interrupted an iteration of its own thread */
        profiler_tls.list_iterations > 0;
    if (is_within || !wait_for_rounds(try_begin_iteration, NULL, WAIT_ROUNDS))
        atomic_fetch_add(&list_iterations.iterating, 1);
    profiler_tls.list_iterations++;
}

void list_iteration_end(void) {
    profiler_tls.list_iterations--;
    atomic_fetch_sub(&list_iterations.iterating, 1);
}

/* Returns true if no other thread iterates, or only threads that wait for the calling thread. The
 * forking thread's own iterations do not count: if that thread forks inside an iteration of the
 * program, it holds the list's lock, and the iterations of other threads wait for it. */
static bool no_other_iterates(void *unused) {
    (void)unused;
    return atomic_load(&list_iterations.iterating) <= profiler_tls.list_iterations ||
           loader_state_is_used_by((uint32_t)syscall(SYS_gettid));
}

void list_iterations_begin_fork(void) {
    if (profiler_tls.list_iterations_held)
        return;
    profiler_tls.list_iterations_held = true;
    atomic_fetch_add(&list_iterations.forking, 1);
    (void)wait_for_rounds(no_other_iterates, NULL, FORK_ROUNDS);
}

void list_iterations_end_fork(void) {
    if (profiler_tls.list_iterations_held)
        atomic_fetch_sub(&list_iterations.forking, 1);
    profiler_tls.list_iterations_held = false;
}

void list_iterations_after_fork(void) {
    profiler_tls.list_iterations_held = false;
    atomic_store(&list_iterations.forking, 0);
    atomic_store(&list_iterations.iterating, profiler_tls.list_iterations);
}
