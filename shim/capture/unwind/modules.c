#include "modules.h"

#include "kernel/profiler_memory.h"
#include "kernel/signals_blocked.h"
#include "kernel/wait.h"
#include "loader_counters.h"
#include "program_path.h"
#include "symbols/loader_state.h"
#include "working_directory.h"

#include <string.h>
#include <sys/mman.h>

enum {
    /* a replaced snapshot stays mapped for so many harvests, because handlers may read it (glibc
     * before 2.35) */
    KEPT_HARVESTS = 2,
    LOCK_ROUNDS = 2000,   /* the wait for the lock lasts so many rounds of wait.h */
    UNLOAD_ROUNDS = 2000, /* dlclose waits for readers for at most so many rounds */
};

/* --- intervals --- */

/* Begins an interval: samples recorded from now on are distinct from earlier ones. Relaxed, as
 * modules_interval(): a sample on another thread, while the object is being loaded or unloaded, may
 * get either number. */
static void begin_interval(struct modules *modules) {
    atomic_fetch_add_explicit(&modules->interval, 1, memory_order_relaxed);
}

/* Names the first and the last interval in which a change may have happened. */
struct span {
    uint64_t first;
    uint64_t last;
};

static bool overlap(const struct harvest_module *a, const struct harvest_module *b) {
    return a->text_start < b->text_end && b->text_start < a->text_end &&
           a->first_interval <= b->last_interval && b->first_interval <= a->last_interval;
}

/* Removes from `module` the intervals that it shares with a forgotten object at the same address,
 * because in these neither object may name addresses. */
static void give_up_common(struct harvest_module *module, const struct harvest_module *forgotten) {
    if (!overlap(module, forgotten))
        return;
    if (module->first_interval >= forgotten->first_interval)
        module->first_interval = forgotten->last_interval + 1;
    else
        module->last_interval = forgotten->first_interval - 1;
}

static void modules_forget(struct modules *modules, struct module_snapshot *taken,
                           const struct harvest_module *forgotten) {
    for (size_t i = 0; i < taken->count; i++)
        give_up_common(&taken->modules[i], forgotten);
    for (size_t i = 0; i < unloaded_modules_count(&modules->unloaded); i++)
        give_up_common(unloaded_modules_at(&modules->unloaded, i), forgotten);
}

/* --- from one snapshot to the next --- */

/* Finds the object in the previous snapshot. The loader lists objects in the order in which it
 * loaded them: so an object that is still loaded mostly follows the object found last, which is at
 * `*place`. */
static struct harvest_module *find_again(struct module_snapshot *snapshot, size_t *place,
                                         const struct harvest_module *module) {
    for (size_t i = 0; i < snapshot->count; i++) {
        const size_t at = (*place + 1 + i) % snapshot->count;
        if (!module_is_same(&snapshot->modules[at], module))
            continue;
        *place = at;
        return &snapshot->modules[at];
    }
    return NULL;
}

/* Assumes that the objects from number `from` on came in `span`. */
static void expect_new(const struct modules *modules, struct module_snapshot *taken, size_t from,
                       struct span span) {
    const uint64_t sure = modules->unsure_interval + 1;
    for (size_t i = from; i < taken->count; i++) {
        taken->modules[i].first_interval = span.first > sure ? span.first : sure;
        taken->modules[i].last_interval = UINT64_MAX;
    }
}

/* Handles an object that was loaded and unloaded unseen, at an unknown address. Therefore an object
 * that was loaded in `span` names addresses of later samples only, and an object that was unloaded
 * in `span` names addresses of earlier samples only.
 */
static void give_up_claims(struct modules *modules, struct module_snapshot *taken,
                           struct span span) {
    for (size_t i = 0; i < taken->count; i++)
        if (taken->modules[i].first_interval >= span.first)
            taken->modules[i].first_interval = span.last + 1;
    for (size_t i = 0; i < unloaded_modules_count(&modules->unloaded); i++) {
        struct harvest_module *const module = unloaded_modules_at(&modules->unloaded, i);
        if (module->last_interval >= span.first)
            module->last_interval = span.first - 1;
    }
    modules->unsure_interval = span.last;
}

/* Remembers an object that is no longer in the list, of which `taken` is a snapshot. */
static void remember_unloaded(struct modules *modules, struct module_snapshot *taken,
                              const struct harvest_module *gone, struct span span) {
    struct harvest_module unloaded = *gone;
    struct harvest_module forgotten;
    unloaded.last_interval = span.last;
    if (unloaded_modules_add(&modules->unloaded, &unloaded, &forgotten))
        modules_forget(modules, taken, &forgotten);
}

static void modules_compare(struct modules *modules, const struct module_snapshot *old,
                            struct module_snapshot *taken, struct span span) {
    uint64_t gone = 0;
    size_t place = taken->count - 1;
    /* holds until an object is found in the previous snapshot */
    expect_new(modules, taken, 0, span);
    for (size_t i = 0; i < old->count; i++) {
        struct harvest_module *const again = find_again(taken, &place, &old->modules[i]);
        if (again)
            again->first_interval = old->modules[i].first_interval;
    }
    for (size_t i = 0; i < old->count; i++) {
        if (find_again(taken, &place, &old->modules[i]))
            continue;
        remember_unloaded(modules, taken, &old->modules[i], span);
        gone++;
    }
    if (taken->subs - old->subs > gone)
        give_up_claims(modules, taken, span);
}

/* Handles the objects that were marked as unloaded in `snapshot`, `unloads` objects in all. */
static void modules_shrink(struct modules *modules, struct module_snapshot *snapshot,
                           uint64_t unloads, struct span span) {
    uint64_t gone = 0;
    for (size_t i = 0; i < snapshot->count; i++) {
        if (!snapshot->modules[i].unloaded)
            continue;
        remember_unloaded(modules, snapshot, &snapshot->modules[i], span);
        gone++;
    }
    module_snapshot_remove_unloaded(snapshot);
    if (unloads > gone)
        give_up_claims(modules, snapshot, span);
}

/* --- keeping it current --- */

bool modules_start(struct modules *modules) {
    struct module_names *const names = &modules->names;
    pthread_mutex_init(&modules->lock, NULL);
    modules->find_object = loaded_object_finder();
    (void)working_directory(names->start_directory, sizeof names->start_directory);
    (void)program_path(names->executable, sizeof names->executable);
    fixed_modules_find(&modules->fixed, (uintptr_t)(void *)modules_start);
    struct module_snapshot *const snapshot = module_snapshot_take(names);
    for (size_t i = 0; snapshot && i < snapshot->count; i++)
        snapshot->modules[i].last_interval = UINT64_MAX;
    modules->seen_interval = 1;
    atomic_store(&modules->interval, 1);
    /* pairs with the acquire in modules_find() */
    atomic_store_explicit(&modules->current, snapshot, memory_order_release);
    return snapshot != NULL;
}

/* Frees a replaced snapshot, or keeps it for expire_locked() if a thread may read it. If the loader
 * does the lookups, only the helper reads snapshots. */
static void modules_retire(struct modules *modules, struct module_snapshot *old) {
    if (modules->find_object && old != modules->pinned) {
        profiler_memory_unmap(old, old->mapping_size);
        return;
    }
    old->retired_epoch = modules->epoch;
    old->retired_next = modules->retired;
    modules->retired = old;
}

static bool still_current(struct modules *modules) {
    modules->seen_interval = modules_interval(modules);
    return false;
}

/* Returns true if no other thread reads the snapshot. Handlers read snapshots before glibc 2.35,
 * and the helper reads the pinned one. */
static bool is_unread(const struct modules *modules, const struct module_snapshot *snapshot) {
    return modules->find_object && snapshot != modules->pinned;
}

static void begin_update(void *modules) {
    begin_interval(modules);
}

/* Returns the time between the last observation and the present one, for which an interval was
 * begun. */
static struct span span_until_now(const struct modules *modules) {
    return (struct span){modules->seen_interval, modules_interval(modules)};
}

static void end_span(struct modules *modules, struct span span) {
    modules->seen_interval = span.last;
    begin_interval(modules);
}

/* Updates the newest snapshot in place. Returns SNAPSHOT_OUTDATED if a new one must be taken; an
 * interval was begun for it. */
static enum snapshot_update update_locked(struct modules *modules,
                                          struct module_snapshot *snapshot) {
    const uint64_t subs = snapshot->subs;
    const size_t count = snapshot->count;
    modules->updating = true;
    const enum snapshot_update result =
        module_snapshot_update(snapshot, &modules->names, begin_update, modules);
    const struct span span = span_until_now(modules);
    if (result == SNAPSHOT_GREW)
        expect_new(modules, snapshot, count, span);
    if (result == SNAPSHOT_SHRANK)
        modules_shrink(modules, snapshot, snapshot->subs - subs, span);
    if (result == SNAPSHOT_GREW || result == SNAPSHOT_SHRANK)
        end_span(modules, span);
    modules->updating = false;
    return result;
}

static bool replace_locked(struct modules *modules, struct module_snapshot *old) {
    const struct span span = span_until_now(modules);
    struct module_snapshot *const taken = module_snapshot_take(&modules->names);
    if (!taken)
        return true; /* without a snapshot, assumes a change */
    modules_compare(modules, old, taken, span);
    const bool unloaded = old->subs != taken->subs;
    /* pairs with the acquire in modules_find() */
    atomic_store_explicit(&modules->current, taken, memory_order_release);
    modules_retire(modules, old);
    end_span(modules, span);
    return unloaded;
}

/* Makes the newest snapshot current if the loader's counters have changed. An object that was
 * loaded since the last snapshot counts as loaded from that snapshot on; an object that was
 * unloaded since the last snapshot counts as loaded until now. Returns true if an object was
 * unloaded, or if there is no memory for a new snapshot. */
static bool refresh_locked(struct modules *modules) {
    struct module_snapshot *const old = atomic_load(&modules->current);
    if (is_unread(modules, old)) {
        switch (update_locked(modules, old)) {
        case SNAPSHOT_CURRENT:
            return still_current(modules);
        case SNAPSHOT_GREW:
            return false;
        case SNAPSHOT_SHRANK:
            return true;
        case SNAPSHOT_OUTDATED:
            return replace_locked(modules, old);
        }
    }
    if (module_snapshot_is_current(old))
        return still_current(modules);
    begin_interval(modules);
    return replace_locked(modules, old);
}

static bool modules_try_lock(void *modules) {
    return pthread_mutex_trylock(&((struct modules *)modules)->lock) == 0;
}

/* Takes the lock, or gives up after a short wait, because the program may unload from within a
 * callback that holds the loader's lock.
 */
static bool modules_lock_soon(struct modules *modules) {
    return wait_for_rounds(modules_try_lock, modules, LOCK_ROUNDS);
}

/* Describes the state of a thread that takes a snapshot. A thread of the program keeps its signals
 * blocked while it holds the lock: otherwise the handler of a fatal signal could wait for the
 * helper, and the helper for the lock. */
struct refresh {
    bool locked;
    bool inside; /* the loader's locks are held, too */
    bool blocked;
    signal_mask before;
};

/* Takes the lock, and the loader's locks, too: in glibc dl_iterate_phdr() may follow a null pointer
 * while another thread loads an object with thread-local variables (_dl_tls_get_addr_soft: the
 * object has a module number for which there is no entry yet). Never waits for one lock with the
 * other one held. */
static bool modules_try_enter(void *modules) {
    if (!modules_try_lock(modules))
        return false;
    if (!loader_state_is_known() || loader_state_try_enter())
        return true;
    pthread_mutex_unlock(&((struct modules *)modules)->lock);
    return false;
}

/* Takes the own lock and the loader's. Takes neither if another thread stays inside the loader, in
 * a library's constructor perhaps; then the caller takes the own lock alone. */
static void refresh_enter(struct refresh *refresh, struct modules *modules) {
    refresh->locked = wait_for_rounds(modules_try_enter, modules, LOCK_ROUNDS);
    refresh->inside = refresh->locked && loader_state_is_known();
}

static struct refresh begin_refresh(struct modules *modules) {
    struct refresh refresh = {.before = 0};
    refresh.blocked = signals_block(&refresh.before);
    refresh_enter(&refresh, modules);
    if (!refresh.locked)
        refresh.locked = modules_try_lock(modules);
    return refresh;
}

static void end_refresh(struct modules *modules, const struct refresh *refresh) {
    if (refresh->inside)
        loader_state_leave();
    if (refresh->locked)
        pthread_mutex_unlock(&modules->lock);
    if (refresh->blocked)
        signals_restore(&refresh->before);
}

/* Works as begin_refresh(), but on the helper: its signals are blocked already, and it waits for
 * the own lock without a bound. */
static struct refresh begin_refresh_on_helper(struct modules *modules) {
    struct refresh refresh = {.before = 0};
    refresh_enter(&refresh, modules);
    if (!refresh.locked)
        pthread_mutex_lock(&modules->lock);
    refresh.locked = true;
    return refresh;
}

bool modules_refresh(struct modules *modules) {
    const struct refresh refresh = begin_refresh(modules);
    const bool unloaded = !refresh.locked || refresh_locked(modules);
    end_refresh(modules, &refresh);
    return unloaded;
}

bool modules_refresh_before_unload(struct modules *modules) {
    const struct refresh refresh = begin_refresh(modules);
    if (refresh.locked)
        begin_interval(modules);
    const bool unloaded = !refresh.locked || refresh_locked(modules);
    end_refresh(modules, &refresh);
    return unloaded;
}

/* Checks first whether objects were unloaded, because a check costs 0.1 µs and a snapshot a fifth
 * of the time of dlopen(). */
void modules_refresh_before_load(struct modules *modules) {
    const struct refresh refresh = begin_refresh(modules);
    if (refresh.locked && loader_counters_read().subs != atomic_load(&modules->current)->subs)
        (void)refresh_locked(modules);
    end_refresh(modules, &refresh);
}

static void expire_locked(struct modules *modules) {
    struct module_snapshot **link = &modules->retired;
    while (*link) {
        struct module_snapshot *const snapshot = *link;
        if (snapshot == modules->pinned ||
            snapshot->retired_epoch + KEPT_HARVESTS > modules->epoch) {
            link = &snapshot->retired_next;
            continue;
        }
        *link = snapshot->retired_next;
        profiler_memory_unmap(snapshot, snapshot->mapping_size);
    }
}

const struct module_snapshot *modules_pin(struct modules *modules, bool *unloaded) {
    const struct refresh refresh = begin_refresh_on_helper(modules);
    modules->epoch++;
    *unloaded = refresh_locked(modules);
    struct module_snapshot *const joined = modules->joined;
    /* clears the pointer first, so that a child that is forked here does not use it */
    modules->joined = NULL;
    if (joined)
        profiler_memory_unmap(joined, joined->mapping_size);
    modules->pinned = atomic_load(&modules->current);
    expire_locked(modules);
    struct module_snapshot *const pinned = modules->pinned;
    end_refresh(modules, &refresh);
    return pinned;
}

void modules_close_interval(struct modules *modules) {
    const struct refresh refresh = begin_refresh_on_helper(modules);
    (void)refresh_locked(modules);
    modules->pinned = atomic_load(&modules->current);
    if (unloaded_modules_count(&modules->unloaded))
        modules->joined = unloaded_modules_join(&modules->unloaded, modules->pinned);
    end_refresh(modules, &refresh);
}

const struct module_snapshot *modules_of_harvest(const struct modules *modules) {
    return modules->joined ? modules->joined : modules->pinned;
}

/* --- unloading --- */

/* Pairs with modules_open() and modules_hold(), which announce a reader, and with their ends. */
static bool has_no_reader(void *modules) {
    return atomic_load_explicit(&((struct modules *)modules)->readers, memory_order_seq_cst) == 0;
}

void modules_begin_unload(struct modules *modules) {
    /* pairs with modules_open(): announces, then checks */
    atomic_fetch_add_explicit(&modules->unloads, 1, memory_order_seq_cst);
    (void)wait_for_rounds(has_no_reader, modules, UNLOAD_ROUNDS);
}

void modules_end_unload(struct modules *modules) {
    /* pairs with the load of `unloads` in modules_open(): the loader has unmapped the object */
    atomic_fetch_sub_explicit(&modules->unloads, 1, memory_order_release);
}

bool modules_begin_fork(struct modules *modules) {
    return modules_lock_soon(modules);
}

void modules_end_fork(struct modules *modules) {
    pthread_mutex_unlock(&modules->lock);
}

void modules_after_fork(struct modules *modules, uint32_t own_unloads) {
    struct module_snapshot *const joined = modules->joined;
    pthread_mutex_init(&modules->lock, NULL);
    modules->pinned = NULL;
    modules->joined = NULL; /* it refers to strings of the pinned snapshot */
    if (joined)
        profiler_memory_unmap(joined, joined->mapping_size);
    if (modules->updating) /* by a thread that is not in the child: the contents may be torn */
        module_snapshot_forget_all(atomic_load(&modules->current));
    modules->updating = false;
    atomic_store(&modules->readers, 0);
    atomic_store(&modules->unloads, own_unloads);
}

/* --- lookup --- */

const struct harvest_module *modules_find(const struct modules *modules, uintptr_t pc) {
    /* pairs with the releases in modules_start() and replace_locked() */
    const struct module_snapshot *const snapshot =
        atomic_load_explicit(&modules->current, memory_order_acquire);
    for (size_t i = 0; snapshot && i < snapshot->count; i++) {
        const struct harvest_module *const module = &snapshot->modules[i];
        if (pc >= module->start && pc < module->end)
            return module;
    }
    return NULL;
}

static bool find_loaded(const struct modules *modules, uintptr_t pc, struct cfi_tables *tables) {
    if (modules->find_object) {
        struct loaded_object found;
        if (modules->find_object((void *)pc, &found) != 0)
            return false;
        *tables = (struct cfi_tables){.header = (uintptr_t)found.eh_frame,
                                      .start = (uintptr_t)found.map_start,
                                      .end = (uintptr_t)found.map_end};
        return true;
    }
    const struct harvest_module *const module = modules_find(modules, pc);
    if (!module)
        return false;
    *tables = (struct cfi_tables){
        .header = module->eh_frame_hdr, .start = module->start, .end = module->end};
    return true;
}

enum modules_result modules_open(struct modules *modules, uintptr_t pc, uint32_t own_unloads,
                                 struct cfi_tables *tables) {
    const struct cfi_tables *const fixed = fixed_modules_at(&modules->fixed, pc);
    if (fixed) {
        *tables = *fixed;
        return MODULES_FOUND;
    }
    /* pairs with modules_begin_unload(): announces, then checks */
    atomic_fetch_add_explicit(&modules->readers, 1, memory_order_seq_cst);
    enum modules_result result = MODULES_CHANGING;
    if (atomic_load_explicit(&modules->unloads, memory_order_seq_cst) <= own_unloads)
        result = find_loaded(modules, pc, tables) ? MODULES_FOUND : MODULES_NONE;
    if (result == MODULES_FOUND) {
        /* mapped until modules_close(); without segments the object's tables are not read */
        tables->segments = object_segments_at(tables->start);
        if (!tables->segments.count)
            tables->header = 0;
    } else /* pairs with the load of a thread that waits for readers */
        atomic_fetch_sub_explicit(&modules->readers, 1, memory_order_release);
    return result;
}

bool modules_hold(struct modules *modules) {
    /* pairs with modules_begin_unload(): announces, then checks */
    atomic_fetch_add_explicit(&modules->readers, 1, memory_order_seq_cst);
    const bool held = atomic_load_explicit(&modules->unloads, memory_order_seq_cst) == 0;
    if (!held)
        modules_release(modules);
    return held;
}

bool modules_span(const struct modules *modules, uintptr_t pc) {
    struct cfi_tables tables;
    return fixed_modules_at(&modules->fixed, pc) || find_loaded(modules, pc, &tables);
}
