/* Hooks dlclose, so that no library is unmapped while a handler reads it. Before the unloading the
 * library is recorded, so that its samples can be named; afterwards every unwind rule is forgotten,
 * because the addresses may be used again. Libraries that our helper unloads are recorded, too,
 * because the program's libraries may be loaded at the same addresses. Loading needs no hook for
 * this: see modules.h. */
#include "capture/capture.h"
#include "capture/symbols/next.h"
#include "entry.h"

#include <dlfcn.h>

HOOK int dlclose(void *handle) {
    if (!atomic_load(&capture.armed) || (profiler_tls.inside && !profiler_tls.is_profiler_thread))
        return next_library_calls()->dlclose(handle);
    (void)modules_refresh_before_unload(&capture.modules);
    rule_cache_invalidate(&capture.rules);
    profiler_tls.unloads++;
    modules_begin_unload(&capture.modules);
    const int result = next_library_calls()->dlclose(handle);
    context_forget_unloaded(&capture.contexts);
    python_forget_unloaded(&capture.python);
    modules_end_unload(&capture.modules);
    profiler_tls.unloads--;
    rule_cache_invalidate(&capture.rules);
    (void)modules_refresh(&capture.modules);
    return result;
}
