/* dlclose: the library is put on record before it goes, so that samples taken in it can be named,
 * and every rule is forgotten after, because its addresses may be used again. Loading needs no
 * hook: modules.h tells why. */
#include "capture.h"
#include "next.h"
#include "otelprof.h"

#include <dlfcn.h>
#include <string.h>

OTELPROF_EXPORT int dlclose(void *handle) {
    if (!atomic_load(&capture.armed) || own_tls.inside)
        return next_dlclose(handle);
    modules_refresh(&capture.modules);
    rule_cache_invalidate(&capture.rules);
    const int result = next_dlclose(handle);
    rule_cache_invalidate(&capture.rules);
    modules_refresh(&capture.modules);
    return result;
}

int next_dlclose(void *handle) {
    static _Atomic(void *) found;
    void *next = atomic_load_explicit(&found, memory_order_relaxed);
    if (!next) {
        next = dlsym(RTLD_NEXT, "dlclose");
        atomic_store_explicit(&found, next, memory_order_relaxed);
    }
    int (*call)(void *);
    memcpy(&call, &next, sizeof next);
    return call(handle);
}
