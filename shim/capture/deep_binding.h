/* Libraries that are bound past us.
 *
 * What dlopen() loads with RTLD_DEEPBIND looks for functions among its own dependencies first, and
 * finds libc's where every other object finds ours: its threads would not be profiled, and it would
 * change the action of our signal behind our back. So once such a library is loaded, the addresses
 * of libc that its relocations have put into it are made ours, for those functions that we export.
 * Changed is only an entry that holds exactly what our function forwards to, or that is still to be
 * bound by its first call and would be bound to that: a library that brings an allocator of its own
 * keeps it. Data that held a function's address when the library was loaded is treated alike, so
 * that comparisons of addresses come out as before.
 *
 * What could not be done (call_binding.h) is done at the next occasion: a call of a hooked
 * function, or the helper's next look.
 */
#ifndef OTELPROF_DEEP_BINDING_H
#define OTELPROF_DEEP_BINDING_H

#include "call_binding.h"
#include "log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct deep_binding {
    struct call_binding sites;
    _Atomic bool used;     /* a library was expected before */
    uint32_t logged_bound; /* of the helper: what the log has said */
    bool logged_refused;
    bool logged_unknown;
    bool logged_namespaces;
};
extern struct deep_binding deep_binding;

/* To be called before a library is loaded with RTLD_DEEPBIND or by dlmopen(). From the first on,
 * CPU time is sampled by a signal that such a library hardly names: its constructor runs before it
 * can be bound. false: this process is not profiled, and nothing is to be done. Context: calm. */
bool deep_binding_expect(void);

/* Binds what has been loaded since the last time. Context: calm. */
void deep_binding_bind(void);

/* The same where it is hardly ever needed. */
static inline void deep_binding_catch_up(void) {
    if (atomic_load_explicit(&deep_binding.sites.expected, memory_order_relaxed))
        deep_binding_bind();
}

/* Says what was done, and what could not be: libraries of another namespace (dlmopen) have a C
 * library of their own, and are left as they are. Context: the helper. */
void deep_binding_report(const struct log *log);

#endif
