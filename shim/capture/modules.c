#include "modules.h"

#include "build_id_note.h"
#include "own_memory.h"
#include "working_directory.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    KEPT_HARVESTS = 2, /* of a snapshot that handlers may read (glibc before 2.35), after its use */
    KEPT_UNLOADED = 64,
    LOCK_PATIENCE = 20, /* rounds of 50 µs */
    FORK_PATIENCE = 2000,
    PATH_BYTES = 512,
    UNLOAD_PATIENCE = 1000, /* rounds of 0.1 ms that dlclose waits for readers at most */
};

/* --- reading one object --- */

static void note_build_id(struct harvest_module *module, const struct object_segments *segments,
                          const ElfW(Phdr) * note) {
    const uintptr_t address = segments->bias + note->p_vaddr;
    if (object_is_readable(segments, address, note->p_memsz))
        module->build_id =
            build_id_note((const void *)address, note->p_memsz, &module->build_id_size);
}

static void add_segment(struct harvest_module *module, const ElfW(Phdr) * segment) {
    const uint64_t start = module->load_bias + segment->p_vaddr;
    const uint64_t end = start + segment->p_memsz;
    if (module->end == 0 || start < module->start)
        module->start = start;
    if (end > module->end)
        module->end = end;
    if (!(segment->p_flags & PF_X))
        return;
    if (!module->text_end) {
        module->text_start = start;
        module->text_file_offset = segment->p_offset;
    }
    module->text_end = end; /* some linkers make several: from the first to the last */
}

static void describe(struct harvest_module *module, const struct dl_phdr_info *info) {
    const struct object_segments segments = {info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr};
    module->load_bias = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD)
            add_segment(module, segment);
        if (segment->p_type == PT_GNU_EH_FRAME) {
            module->eh_frame_hdr = info->dlpi_addr + segment->p_vaddr;
            module->eh_frame_hdr_size = segment->p_memsz;
        }
        if (segment->p_type == PT_NOTE && !module->build_id)
            note_build_id(module, &segments, segment);
    }
}

/* --- building a snapshot --- */

/* When a change that is seen now may have happened. */
struct span {
    uint64_t first;
    uint64_t last;
};

/* Everything that a snapshot points to lies in its own mapping, behind the array. */
struct builder {
    struct modules *modules;
    struct module_snapshot *snapshot; /* NULL while only measuring */
    size_t count;
    size_t capacity;
    char *text;
    char *text_end;
    uint64_t adds;
    uint64_t subs;
    uint64_t gone; /* objects of the previous snapshot */
    bool first;
    bool unsure; /* something came and went unseen, or is left out */
};

static const char *keep_bytes(struct builder *b, const void *bytes, size_t size) {
    if ((size_t)(b->text_end - b->text) < size)
        return NULL;
    char *const kept = b->text;
    memcpy(kept, bytes, size);
    b->text += size;
    return kept;
}

static void join(char *path, const char *directory, const char *name) {
    const size_t left = strlen(directory);
    const size_t right = strlen(name);
    path[0] = 0;
    if (left + 1 + right >= PATH_BYTES)
        return;
    memcpy(path, directory, left);
    path[left] = '/';
    memcpy(path + left + 1, name, right + 1);
}

/* The absolute path of an object as the loader names it: "" is the executable. */
static void path_of(const struct builder *b, const struct dl_phdr_info *info, char *path) {
    const char *const name = info->dlpi_name ? info->dlpi_name : "";
    const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    path[0] = 0;
    if (vdso && vdso == info->dlpi_addr)
        memcpy(path, "[vdso]", sizeof "[vdso]");
    else if (b->first && name[0] == 0) {
        memcpy(path, b->modules->executable, PATH_BYTES);
    } else if (name[0] == '/') {
        if (strlen(name) < PATH_BYTES)
            memcpy(path, name, strlen(name) + 1);
    } else if (name[0] && b->modules->start_directory[0])
        join(path, b->modules->start_directory, name);
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *arg) {
    struct builder *const b = arg;
    (void)size;
    b->adds = info->dlpi_adds;
    b->subs = info->dlpi_subs;
    if (!b->snapshot) {
        b->count++;
        return 0;
    }
    if (b->count == b->capacity)
        return 0;
    struct harvest_module *const module = &b->snapshot->modules[b->count];
    char path[PATH_BYTES];
    describe(module, info);
    path_of(b, info, path);
    b->first = false;
    if (module->end == 0)
        return 0;
    const char *const kept_path = keep_bytes(b, path, strlen(path) + 1);
    module->path = kept_path ? kept_path : "";
    if (module->build_id)
        module->build_id = (const uint8_t *)keep_bytes(b, module->build_id, module->build_id_size);
    b->count++;
    return 0;
}

static bool same_object(const struct harvest_module *a, const struct harvest_module *b) {
    return a->start == b->start && a->end == b->end && a->load_bias == b->load_bias &&
           strcmp(a->path, b->path) == 0;
}

/* The same object among those that are listed already, or NULL. */
static struct harvest_module *find_same(const struct builder *b,
                                        const struct harvest_module *module) {
    for (size_t i = 0; i < b->count; i++)
        if (same_object(module, &b->snapshot->modules[i]))
            return &b->snapshot->modules[i];
    return NULL;
}

static void keep_one_unloaded(struct builder *b, const struct harvest_module *old, uint64_t last) {
    struct harvest_module *const module = &b->snapshot->modules[b->count];
    *module = *old;
    const char *const path = keep_bytes(b, old->path, strlen(old->path) + 1);
    module->path = path ? path : "";
    if (old->build_id)
        module->build_id = (const uint8_t *)keep_bytes(b, old->build_id, old->build_id_size);
    module->unloaded = true;
    module->last_interval = last;
    b->count++;
}

/* An object that is back at its place, unloaded or not, is one with what it was. */
static void carry_over(struct builder *b, const struct harvest_module *old, uint64_t last) {
    struct harvest_module *const again = find_same(b, old);
    if (again) {
        if (old->first_interval < again->first_interval)
            again->first_interval = old->first_interval;
        return;
    }
    b->gone += !old->unloaded;
    if (b->count < b->capacity)
        keep_one_unloaded(b, old, last);
    else
        b->unsure |= last >= modules_interval(b->modules);
}

/* The objects of the previous snapshot: those that went just now, then those that went before, the
 * latest first. */
static void carry_all_over(struct builder *b, const struct module_snapshot *previous,
                           struct span span) {
    for (size_t i = 0; i < previous->count; i++)
        if (!previous->modules[i].unloaded)
            carry_over(b, &previous->modules[i], span.last);
    for (size_t i = 0; i < previous->count; i++)
        if (previous->modules[i].unloaded)
            carry_over(b, &previous->modules[i], previous->modules[i].last_interval);
    b->unsure |= b->subs - previous->subs > b->gone;
}

/* Something was where nobody saw it: objects that came in `span` are sure of what follows only,
 * those that went of what was before. */
static void give_up_claims(struct builder *b, struct span span) {
    for (size_t i = 0; i < b->count; i++) {
        struct harvest_module *const module = &b->snapshot->modules[i];
        if (module->first_interval >= span.first)
            module->first_interval = span.last + 1;
        if (module->unloaded && module->last_interval >= span.first)
            module->last_interval = span.first - 1;
    }
    b->modules->unsure_interval = span.last;
}

static size_t snapshot_bytes(const struct builder *b, size_t objects) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t bytes =
        sizeof(struct module_snapshot) +
        objects * (sizeof(struct harvest_module) + PATH_BYTES + MAX_BUILD_ID_BYTES);
    (void)b;
    return (bytes + page - 1) / page * page;
}

static struct module_snapshot *
take_snapshot(struct modules *modules, const struct module_snapshot *previous, struct span span) {
    struct builder b = {.modules = modules, .first = true};
    dl_iterate_phdr(visit_object, &b);
    /* room for what is loaded in between, and for what was unloaded since */
    const size_t capacity = b.count + 8 + KEPT_UNLOADED;
    const size_t bytes = snapshot_bytes(&b, capacity);
    void *const memory = own_memory_take(bytes);
    if (!memory)
        return NULL;

    b.snapshot = memory;
    b.capacity = capacity;
    b.count = 0;
    b.text = (char *)&b.snapshot->modules[capacity];
    b.text_end = (char *)memory + bytes;
    dl_iterate_phdr(visit_object, &b);
    for (size_t i = 0; i < b.count; i++) {
        b.snapshot->modules[i].first_interval = span.first;
        b.snapshot->modules[i].last_interval = UINT64_MAX;
    }
    if (previous)
        carry_all_over(&b, previous, span);
    if (b.unsure || (previous && modules->unsure_interval >= span.first))
        give_up_claims(&b, span);
    b.snapshot->mapping_size = bytes;
    b.snapshot->count = b.count;
    b.snapshot->adds = b.adds;
    b.snapshot->subs = b.subs;
    return b.snapshot;
}

/* --- keeping it current --- */

static int read_counters(struct dl_phdr_info *info, size_t size, void *arg) {
    struct builder *const b = arg;
    (void)size;
    b->adds = info->dlpi_adds;
    b->subs = info->dlpi_subs;
    return 1;
}

bool modules_start(struct modules *modules) {
    pthread_mutex_init(&modules->lock, NULL);
    modules->find_object = loaded_object_finder();
    (void)working_directory(modules->start_directory, sizeof modules->start_directory);
    const ssize_t length = readlink("/proc/thread-self/exe", modules->executable, PATH_BYTES - 1);
    const bool complete = length > 0 && length < PATH_BYTES - 1;
    modules->executable[complete ? length : 0] = 0;
    fixed_modules_find(&modules->fixed, (uintptr_t)(void *)modules_start);
    struct module_snapshot *const snapshot = take_snapshot(modules, NULL, (struct span){0, 0});
    atomic_store(&modules->interval, 1);
    atomic_store_explicit(&modules->current, snapshot, memory_order_release);
    return snapshot != NULL;
}

/* Nobody but the helper reads a snapshot where the loader answers look-ups itself. */
static void retire(struct modules *modules, struct module_snapshot *old) {
    if (modules->find_object && old != modules->pinned) {
        own_memory_unmap(old, old->mapping_size);
        return;
    }
    old->retired_epoch = modules->epoch;
    old->retired_next = modules->retired;
    modules->retired = old;
}

/* true: something was unloaded. */
static bool refresh_locked(struct modules *modules, struct span span) {
    struct builder counters = {.first = true};
    dl_iterate_phdr(read_counters, &counters);
    struct module_snapshot *const old = atomic_load(&modules->current);
    if (old && old->adds == counters.adds && old->subs == counters.subs)
        return false;
    modules->changed_interval = span.last;
    struct module_snapshot *const taken = take_snapshot(modules, old, span);
    if (!taken) {
        modules->unsure_interval = span.last;
        return true; /* what is unknown is taken for changed */
    }
    const bool unloaded = !old || old->subs != taken->subs;
    /* pairs with the acquire in modules_find() */
    atomic_store_explicit(&modules->current, taken, memory_order_release);
    if (old)
        retire(modules, old);
    return unloaded;
}

static struct span present_of(const struct modules *modules) {
    const uint64_t interval = modules_interval(modules);
    return (struct span){interval, interval};
}

/* Never waits for long: somebody may unload from within a callback that holds the loader's lock. */
static bool lock_soon(struct modules *modules, int patience) {
    for (int i = 0; pthread_mutex_trylock(&modules->lock) != 0; i++) {
        if (i == patience)
            return false;
        syscall(SYS_nanosleep, &(struct timespec){0, 50000}, NULL); /* no cancellation point */
    }
    return true;
}

bool modules_refresh(struct modules *modules) {
    if (!lock_soon(modules, LOCK_PATIENCE))
        return true;
    const bool unloaded = refresh_locked(modules, present_of(modules));
    pthread_mutex_unlock(&modules->lock);
    return unloaded;
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
        own_memory_unmap(snapshot, snapshot->mapping_size);
    }
}

const struct module_snapshot *modules_pin(struct modules *modules, bool *unloaded) {
    pthread_mutex_lock(&modules->lock);
    modules->epoch++;
    *unloaded = refresh_locked(modules, present_of(modules));
    modules->pinned = atomic_load(&modules->current);
    expire_locked(modules);
    struct module_snapshot *const pinned = modules->pinned;
    pthread_mutex_unlock(&modules->lock);
    return pinned;
}

void modules_close_interval(struct modules *modules) {
    pthread_mutex_lock(&modules->lock);
    const uint64_t interval = modules_interval(modules);
    (void)refresh_locked(modules, present_of(modules));
    if (modules->changed_interval == interval) {
        /* what changes between these two lines may belong to either interval */
        atomic_store_explicit(&modules->interval, interval + 1, memory_order_seq_cst);
        (void)refresh_locked(modules, (struct span){interval, interval + 1});
    }
    modules->pinned = atomic_load(&modules->current);
    pthread_mutex_unlock(&modules->lock);
}

/* --- unloading --- */

void modules_begin_unload(struct modules *modules) {
    /* pairs with modules_open(): announce, then look */
    atomic_fetch_add_explicit(&modules->unloads, 1, memory_order_seq_cst);
    for (int i = 0; i < UNLOAD_PATIENCE; i++) {
        if (atomic_load_explicit(&modules->readers, memory_order_seq_cst) == 0)
            return;
        syscall(SYS_nanosleep, &(struct timespec){0, 100000}, NULL); /* no cancellation point */
    }
}

void modules_end_unload(struct modules *modules) {
    atomic_fetch_sub_explicit(&modules->unloads, 1, memory_order_release);
}

bool modules_begin_fork(struct modules *modules) {
    return lock_soon(modules, FORK_PATIENCE);
}

void modules_end_fork(struct modules *modules) {
    pthread_mutex_unlock(&modules->lock);
}

void modules_after_fork(struct modules *modules, uint32_t own_unloads) {
    pthread_mutex_init(&modules->lock, NULL);
    modules->pinned = NULL;
    atomic_store(&modules->readers, 0);
    atomic_store(&modules->unloads, own_unloads);
}

/* --- asking --- */

const struct harvest_module *modules_find(const struct modules *modules, uintptr_t pc) {
    /* pairs with the release in refresh_locked() */
    const struct module_snapshot *const snapshot =
        atomic_load_explicit(&modules->current, memory_order_acquire);
    for (size_t i = 0; snapshot && i < snapshot->count; i++) {
        const struct harvest_module *const module = &snapshot->modules[i];
        if (pc >= module->start && pc < module->end && !module->unloaded)
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

/* Of what stays mapped until modules_close(). Without them the object's tables are not read. */
static void find_segments(struct cfi_tables *tables) {
    tables->segments = object_segments_at(tables->start);
    if (!tables->segments.count)
        tables->header = 0;
}

enum modules_answer modules_open(struct modules *modules, uintptr_t pc, uint32_t own_unloads,
                                 struct cfi_tables *tables) {
    const struct cfi_tables *const fixed = fixed_modules_at(&modules->fixed, pc);
    if (fixed) {
        *tables = *fixed;
        return MODULES_FOUND;
    }
    /* pairs with modules_begin_unload(): announce, then look */
    atomic_fetch_add_explicit(&modules->readers, 1, memory_order_seq_cst);
    enum modules_answer answer = MODULES_CHANGING;
    if (atomic_load_explicit(&modules->unloads, memory_order_seq_cst) <= own_unloads)
        answer = find_loaded(modules, pc, tables) ? MODULES_FOUND : MODULES_NONE;
    if (answer == MODULES_FOUND)
        find_segments(tables);
    if (answer != MODULES_FOUND)
        atomic_fetch_sub_explicit(&modules->readers, 1, memory_order_release);
    return answer;
}

bool modules_span(const struct modules *modules, uintptr_t pc) {
    struct cfi_tables tables;
    return fixed_modules_at(&modules->fixed, pc) || find_loaded(modules, pc, &tables);
}
