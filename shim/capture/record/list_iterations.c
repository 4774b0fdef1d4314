#include "list_iterations.h"

#include "kernel/wait.h"
#include "symbols/loader_state.h"
#include "thread_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Rounds of wait.h: 100 ms or more; 5 s for a fork, whose child would be stuck. */
enum { WAIT_ROUNDS = 2000, FORK_ROUNDS = 100000 };

static _Atomic uint32_t iterations; /* threads that iterate */
static _Atomic uint32_t forks;      /* threads that are forking */

/* Pairs with list_iterations_begin_fork(): at least one of the two sees the other. */
static bool try_begin_iteration(void *unused) {
    (void)unused;
    atomic_fetch_add(&iterations, 1);
    if (atomic_load(&forks) == 0)
        return true;
    atomic_fetch_sub(&iterations, 1);
    return false;
}

void list_iteration_begin(void) {
    const bool is_within = own_tls.list_iterations > 0; /* this call has interrupted an iteration */
    if (is_within || !wait_for_rounds(try_begin_iteration, NULL, WAIT_ROUNDS))
        atomic_fetch_add(&iterations, 1);
    own_tls.list_iterations++;
}

void list_iteration_end(void) {
    own_tls.list_iterations--;
    atomic_fetch_sub(&iterations, 1);
}

/* Returns true if no other thread iterates. The forking thread's own iterations do not count, nor
 * do those that wait for it because it forks inside an iteration of the program. */
static bool no_other_iterates(void *unused) {
    (void)unused;
    return atomic_load(&iterations) <= own_tls.list_iterations ||
           loader_state_is_used_by((uint32_t)syscall(SYS_gettid));
}

void list_iterations_begin_fork(void) {
    if (own_tls.list_iterations_held)
        return;
    own_tls.list_iterations_held = true;
    atomic_fetch_add(&forks, 1);
    (void)wait_for_rounds(no_other_iterates, NULL, FORK_ROUNDS);
}

void list_iterations_end_fork(void) {
    if (own_tls.list_iterations_held)
        atomic_fetch_sub(&forks, 1);
    own_tls.list_iterations_held = false;
}

void list_iterations_after_fork(void) {
    own_tls.list_iterations_held = false;
    atomic_store(&forks, 0);
    atomic_store(&iterations, own_tls.list_iterations);
}
