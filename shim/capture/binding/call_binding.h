/* Binds call sites of loaded objects (call_sites.h) under the loader's own lock. Gives up
 * if another thread holds the lock: while that thread is inside the loader, an object may be half
 * relocated.
 */
#ifndef OTELPROF_CALL_BINDING_H
#define OTELPROF_CALL_BINDING_H

#include "call_sites.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct call_binding {
    _Atomic bool expected; /* an object was loaded, or is being loaded */
    _Atomic bool busy;     /* a thread is binding */
    uint64_t adds;         /* the loader's counter when binding last finished; guarded by `busy` */
    _Atomic uint32_t bound;
    _Atomic uint32_t refused; /* entries that the kernel refused to make writable */
};

/* Binds the objects loaded since the last time, and clears `expected`; leaves both to a later call
 * if another thread holds the loader's lock, or the lock is not known: returns true nevertheless,
 * because the objects' code may run, bound or not. Returns false if this process is not profiled;
 * or if another thread is binding: then `expected` is set, because that thread may miss the
 * caller's object. Context: calm. */
bool call_binding_bind(struct call_binding *binding, call_site_rule *rule);

/* Binds as call_binding_bind() does, where no other thread can be inside the loader. Context: calm,
 * at start. */
void call_binding_bind_at_start(struct call_binding *binding, call_site_rule *rule);

#endif
