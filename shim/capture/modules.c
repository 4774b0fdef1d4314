#include "modules.h"

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

/* struct dl_find_object of glibc's <dlfcn.h> (2.35), stated here so that an older glibc's headers
 * can build us; its reserved tail is part of the ABI. */
struct found_object {
    unsigned long long flags;
    void *map_start;
    void *map_end;
    struct link_map *link_map;
    void *eh_frame;
    unsigned long long reserved[7];
};

/* An unloaded object is kept for this many harvests, and a snapshot that signal handlers may read
 * (glibc before 2.35) for as many after its last use. */
enum {
    KEPT_HARVESTS = 2,
    KEPT_UNLOADED = 64,
    PATH_BYTES = 512,
    BUILD_ID_BYTES = 64,
    UNLOAD_PATIENCE = 1000, /* rounds of 0.1 ms that dlclose waits for readers at most */
};

/* --- reading one object --- */

static void note_build_id(struct harvest_module *module, uintptr_t note, size_t size) {
    const uintptr_t end = note + size;
    while (end - note >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *const header = (const void *)note;
        const uintptr_t name = note + sizeof *header;
        const uintptr_t descriptor = name + ((header->n_namesz + 3u) & ~3u);
        const uintptr_t next = descriptor + ((header->n_descsz + 3u) & ~3u);
        if (next > end || next <= note)
            return;
        if (header->n_type == NT_GNU_BUILD_ID && header->n_namesz == 4 &&
            memcmp((const void *)name, "GNU", 4) == 0 && header->n_descsz <= BUILD_ID_BYTES) {
            module->build_id = (const uint8_t *)descriptor;
            module->build_id_size = header->n_descsz;
            return;
        }
        note = next;
    }
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
            note_build_id(module, info->dlpi_addr + segment->p_vaddr, segment->p_memsz);
    }
}

/* --- building a snapshot --- */

/* Everything that a snapshot points to lies in its own mapping, behind the array. */
struct builder {
    struct modules *modules;
    struct module_snapshot *snapshot; /* NULL while only measuring */
    size_t count;
    size_t capacity;
    char *text;
    char *text_end;
    size_t text_bytes;
    uint64_t adds;
    uint64_t subs;
    bool first;
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
        const ssize_t length = readlink("/proc/thread-self/exe", path, PATH_BYTES - 1);
        path[length > 0 ? length : 0] = 0;
    } else if (name[0] == '/') {
        if (strlen(name) < PATH_BYTES)
            memcpy(path, name, strlen(name) + 1);
    } else if (name[0])
        join(path, b->modules->start_directory, name);
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *arg) {
    struct builder *const b = arg;
    (void)size;
    b->adds = info->dlpi_adds;
    b->subs = info->dlpi_subs;
    if (!b->snapshot) {
        b->count++;
        b->text_bytes += PATH_BYTES + BUILD_ID_BYTES;
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

static bool still_loaded(const struct builder *b, size_t loaded,
                         const struct harvest_module *module) {
    for (size_t i = 0; i < loaded; i++)
        if (same_object(module, &b->snapshot->modules[i]))
            return true;
    return false;
}

static void keep_one_unloaded(struct builder *b, const struct harvest_module *old) {
    struct harvest_module *const module = &b->snapshot->modules[b->count];
    *module = *old;
    const char *const path = keep_bytes(b, old->path, strlen(old->path) + 1);
    module->path = path ? path : "";
    if (old->build_id)
        module->build_id = (const uint8_t *)keep_bytes(b, old->build_id, old->build_id_size);
    if (!old->unloaded)
        module->unloaded_epoch = b->modules->epoch;
    module->unloaded = true;
    b->count++;
}

/* Objects of the previous snapshot that are gone are carried over, marked as unloaded. */
static void keep_unloaded(struct builder *b, const struct module_snapshot *previous) {
    const size_t loaded = b->count;
    const uint64_t epoch = b->modules->epoch;
    for (size_t i = 0; previous && i < previous->count; i++) {
        const struct harvest_module *const old = &previous->modules[i];
        if (old->unloaded && old->unloaded_epoch + KEPT_HARVESTS < epoch)
            continue;
        if (b->count < b->capacity && !still_loaded(b, loaded, old))
            keep_one_unloaded(b, old);
    }
}

static size_t snapshot_bytes(const struct builder *b, size_t objects) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t bytes = sizeof(struct module_snapshot) +
                         objects * (sizeof(struct harvest_module) + PATH_BYTES + BUILD_ID_BYTES);
    (void)b;
    return (bytes + page - 1) / page * page;
}

static struct module_snapshot *take_snapshot(struct modules *modules,
                                             const struct module_snapshot *previous) {
    struct builder b = {.modules = modules, .first = true};
    dl_iterate_phdr(visit_object, &b);
    /* room for what is loaded in between, and for what was unloaded since */
    const size_t capacity = b.count + 8 + KEPT_UNLOADED;
    const size_t bytes = snapshot_bytes(&b, capacity);
    void *const memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;

    b.snapshot = memory;
    b.capacity = capacity;
    b.count = 0;
    b.text = (char *)&b.snapshot->modules[capacity];
    b.text_end = (char *)memory + bytes;
    dl_iterate_phdr(visit_object, &b);
    keep_unloaded(&b, previous);
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
    void *const symbol = dlsym(RTLD_DEFAULT, "_dl_find_object");
    memcpy(&modules->find_object, &symbol, sizeof symbol);
    if (!getcwd(modules->start_directory, sizeof modules->start_directory))
        modules->start_directory[0] = 0;
    fixed_modules_find(&modules->fixed, (uintptr_t)(void *)modules_start);
    struct module_snapshot *const snapshot = take_snapshot(modules, NULL);
    atomic_store_explicit(&modules->current, snapshot, memory_order_release);
    return snapshot != NULL;
}

/* Nobody but the helper reads a snapshot where the loader answers look-ups itself. */
static void retire(struct modules *modules, struct module_snapshot *old) {
    if (modules->find_object && old != modules->pinned) {
        munmap(old, old->mapping_size);
        return;
    }
    old->retired_epoch = modules->epoch;
    old->retired_next = modules->retired;
    modules->retired = old;
}

/* true: something was unloaded. */
static bool refresh_locked(struct modules *modules) {
    struct builder counters = {.first = true};
    dl_iterate_phdr(read_counters, &counters);
    struct module_snapshot *const old = atomic_load(&modules->current);
    if (old && old->adds == counters.adds && old->subs == counters.subs)
        return false;
    struct module_snapshot *const taken = take_snapshot(modules, old);
    if (!taken)
        return true; /* what is unknown is taken for changed */
    const bool unloaded = !old || old->subs != taken->subs;
    /* pairs with the acquire in modules_find() */
    atomic_store_explicit(&modules->current, taken, memory_order_release);
    if (old)
        retire(modules, old);
    return unloaded;
}

bool modules_refresh(struct modules *modules) {
    /* never wait: somebody may unload from within a callback that holds the loader's lock */
    if (pthread_mutex_trylock(&modules->lock) != 0)
        return true;
    const bool unloaded = refresh_locked(modules);
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
        munmap(snapshot, snapshot->mapping_size);
    }
}

const struct module_snapshot *modules_pin(struct modules *modules, bool *unloaded) {
    pthread_mutex_lock(&modules->lock);
    modules->epoch++;
    *unloaded = refresh_locked(modules);
    modules->pinned = atomic_load(&modules->current);
    expire_locked(modules);
    struct module_snapshot *const pinned = modules->pinned;
    pthread_mutex_unlock(&modules->lock);
    return pinned;
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
        struct found_object found;
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
    if (answer != MODULES_FOUND)
        atomic_fetch_sub_explicit(&modules->readers, 1, memory_order_release);
    return answer;
}

bool modules_span(const struct modules *modules, uintptr_t pc) {
    struct cfi_tables tables;
    return fixed_modules_at(&modules->fixed, pc) || find_loaded(modules, pc, &tables);
}
