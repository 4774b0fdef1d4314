/* Binds libraries that the loader binds past our exports.
 *
 * A library that dlopen() loads with RTLD_DEEPBIND searches its own dependencies first, and so
 * calls libc's functions instead of ours: its threads would not be profiled, and it would change
 * the action of our signal unseen. So once such a library is loaded, the addresses of libc's
 * functions in its tables are replaced by the addresses of our hooks. An entry is changed only if
 * it holds the function to which our hook forwards, or if its first call would bind it to that
 * function: a library that brings its own allocator keeps that allocator. Pointers to functions in
 * the library's data are replaced, too, so that comparisons of addresses give the same results as
 * before.
 *
 * Work that could not be done (call_binding.h) is retried at the next occasion: a call of a hooked
 * function, or the helper's next poll. */
#ifndef OTELPROF_DEEP_BINDING_H
#define OTELPROF_DEEP_BINDING_H

#include "call_binding.h"
#include "log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct deep_binding {
    struct call_binding sites;
    _Atomic bool used;     /* a library was announced before */
    uint32_t logged_bound; /* the helper's: count already logged */
    bool logged_refused;
    bool logged_unknown;
    bool logged_namespaces;
};
extern struct deep_binding deep_binding;

/* Announces a library that is about to be loaded with RTLD_DEEPBIND or by dlmopen(). From the first
 * call on, CPU time is sampled by a signal that such a library is unlikely to use: its constructor
 * runs before it can be bound. Returns false if this process is not profiled: then the caller need
 * not bind. Context: calm. */
bool deep_binding_expect(void);

/* Binds the libraries loaded since the last time. Context: calm. */
void deep_binding_bind(void);

/* Binds the libraries loaded since the last time, before the program calls them. Waits for another
 * thread that is inside the loader (the helper may be), for a tenth of a second or more at most;
 * then leaves the work to a later call. Context: calm; the caller has no lock of the profiler's. */
void deep_binding_bind_before_use(void);

/* Calls deep_binding_bind() if a library was announced and is not bound yet, which is rare. */
static inline void deep_binding_catch_up(void) {
    if (atomic_load_explicit(&deep_binding.sites.expected, memory_order_relaxed))
        deep_binding_bind();
}

/* Logs how many addresses were bound, and how many could not be. Libraries in another namespace
 * (dlmopen) have a C library of their own, and are not bound. Context: the helper. */
void deep_binding_report(const struct log *log);

#endif
