#include "call_binding.h"

#include "cpu/sampler.h"
#include "kernel/signals_blocked.h"
#include "record/thread_table.h"
#include "symbols/loader_state.h"

static void bind_new(struct call_binding *binding, call_site_rule *rule) {
    struct call_site_counts counts = {0, 0};
    call_sites_bind_new(&binding->adds, rule, &counts);
    atomic_fetch_add(&binding->bound, counts.bound);
    atomic_fetch_add(&binding->refused, counts.refused);
}

bool call_binding_bind(struct call_binding *binding, call_site_rule *rule) {
    signal_mask before = 0;
    if (!sampler_is_armed())
        return false;
    if (atomic_exchange(&binding->busy, true)) {
        /* that thread may have cleared `expected` before the caller's object was loaded */
        atomic_store(&binding->expected, true);
        return false;
    }
    /* blocks signals, because a handler that left by a jump would leave the lock taken */
    const bool blocked = signals_block(&before);
    profiler_tls.inside += OWN_WORK;
    if (loader_state_try_enter()) {
        atomic_store(&binding->expected, false);
        bind_new(binding, rule);
        loader_state_leave();
    }
    profiler_tls.inside -= OWN_WORK;
    atomic_store(&binding->busy, false);
    if (blocked)
        signals_restore(&before);
    return true;
}

void call_binding_bind_at_start(struct call_binding *binding, call_site_rule *rule) {
    profiler_tls.inside += OWN_WORK;
    bind_new(binding, rule);
    profiler_tls.inside -= OWN_WORK;
}
