#include "list_looks.h"

#include "kernel/wait.h"
#include "symbols/loader_state.h"
#include "thread_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Of wait.h: 100 ms or more, and for a fork, whose child would be stuck, 5 s. */
enum { WAIT_ROUNDS = 2000, FORK_ROUNDS = 100000 };

static _Atomic uint32_t looks; /* threads that are in one */
static _Atomic uint32_t forks; /* threads that are forking */

/* Pairs with list_looks_begin_fork(): either this sees the fork, or that sees the look. */
static bool try_begin(void *unused) {
    (void)unused;
    atomic_fetch_add(&looks, 1);
    if (atomic_load(&forks) == 0)
        return true;
    atomic_fetch_sub(&looks, 1);
    return false;
}

void list_look_begin(void) {
    const bool is_within = own_tls.list_looks > 0; /* this interrupted it */
    if (is_within || !wait_for_rounds(try_begin, NULL, WAIT_ROUNDS))
        atomic_fetch_add(&looks, 1);
    own_tls.list_looks++;
}

void list_look_end(void) {
    own_tls.list_looks--;
    atomic_fetch_sub(&looks, 1);
}

/* But for those that this thread is in itself; nor for those that wait for this thread, which forks
 * in a look of the program's. */
static bool nobody_looks(void *unused) {
    (void)unused;
    return atomic_load(&looks) <= own_tls.list_looks ||
           loader_state_is_used_by((uint32_t)syscall(SYS_gettid));
}

void list_looks_begin_fork(void) {
    if (own_tls.looks_are_held)
        return;
    own_tls.looks_are_held = true;
    atomic_fetch_add(&forks, 1);
    (void)wait_for_rounds(nobody_looks, NULL, FORK_ROUNDS);
}

void list_looks_end_fork(void) {
    if (own_tls.looks_are_held)
        atomic_fetch_sub(&forks, 1);
    own_tls.looks_are_held = false;
}

void list_looks_after_fork(void) {
    own_tls.looks_are_held = false;
    atomic_store(&forks, 0);
    atomic_store(&looks, own_tls.list_looks);
}
