#include "module_snapshot.h"

#include "build_id_note.h"
#include "kernel/profiler_memory.h"
#include "loader_counters.h"
#include "object_segments.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum {
    LOADED_MEANWHILE = 32
}; /* leaves room for objects that other threads may load between counting and listing */

/* --- reading one object --- */

static void module_add_segment(struct harvest_module *module, const ElfW(Phdr) * segment) {
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
    /* the range extends from the first segment of code to the last, because some linkers make
     * several */
    module->text_end = end;
}

static void module_snapshot_describe(struct harvest_module *module,
                                     const struct dl_phdr_info *info) {
    const struct object_segments segments = object_segments_of(info);
    module->load_bias = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &info->dlpi_phdr[i];
        const uintptr_t address = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD)
            module_add_segment(module, segment);
        if (segment->p_type == PT_GNU_EH_FRAME) {
            module->eh_frame_hdr = address;
            module->eh_frame_hdr_size = segment->p_memsz;
        }
        if (segment->p_type == PT_NOTE && !module->build_id &&
            object_is_readable(&segments, address, segment->p_memsz))
            module->build_id =
                build_id_note((const void *)address, segment->p_memsz, &module->build_id_size);
    }
}

/* --- building --- */

/* Holds a snapshot while it is built; everything that a snapshot points to lies in its own mapping,
 * behind the array. */
struct builder {
    const struct module_names *names;
    struct module_snapshot *snapshot; /* NULL: the builder only measures */
    size_t listed;                    /* number of objects that the loader has listed so far */
};

static const void *keep_bytes(struct module_snapshot *snapshot, const void *bytes, size_t size) {
    if ((size_t)(snapshot->text_end - snapshot->text) < size)
        return NULL;
    char *const kept = snapshot->text;
    memcpy(kept, bytes, size);
    snapshot->text += size;
    return kept;
}

static void join(char *path, const char *directory, const char *name) {
    const size_t left = strlen(directory);
    const size_t right = strlen(name);
    path[0] = 0;
    if (left + 1 + right >= MODULE_PATH_BYTES)
        return;
    memcpy(path, directory, left);
    path[left] = '/';
    memcpy(path + left + 1, name, right + 1);
}

/* Copies the absolute path of an object; "": it is not known, or too long. The first object of the
 * list, which the loader names "", is the executable. */
static void copy_module_path(const struct builder *b, const struct dl_phdr_info *info, char *path) {
    const char *const name = info->dlpi_name ? info->dlpi_name : "";
    const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    path[0] = 0;
    if (vdso && vdso == info->dlpi_addr)
        memcpy(path, "[vdso]", sizeof "[vdso]");
    else if (b->listed == 1 && name[0] == 0) {
        memcpy(path, b->names->executable, MODULE_PATH_BYTES);
    } else if (name[0] == '/') {
        if (strlen(name) < MODULE_PATH_BYTES)
            memcpy(path, name, strlen(name) + 1);
    } else if (name[0] && b->names->start_directory[0])
        join(path, b->names->start_directory, name);
}

/* Adds an object. Returns false if it is left out, because there is no room or it has no segment,
 * or if it lacks a string that found no room. */
static bool snapshot_add(const struct builder *b, const struct dl_phdr_info *info) {
    struct module_snapshot *const snapshot = b->snapshot;
    if (snapshot->count == snapshot->capacity)
        return false;
    struct harvest_module *const module = &snapshot->modules[snapshot->count];
    char path[MODULE_PATH_BYTES];
    *module = (struct harvest_module){.load_bias = 0};
    module_snapshot_describe(module, info);
    copy_module_path(b, info, path);
    if (module->end == 0)
        return false;
    const char *const kept_path = keep_bytes(snapshot, path, strlen(path) + 1);
    const bool has_id = module->build_id != NULL;
    module->path = kept_path ? kept_path : "";
    if (has_id)
        module->build_id = keep_bytes(snapshot, module->build_id, module->build_id_size);
    snapshot->headers[snapshot->count++] = info->dlpi_phdr;
    return kept_path && has_id == (module->build_id != NULL);
}

static int snapshot_add_object(struct dl_phdr_info *info, size_t size, void *arg) {
    struct builder *const b = arg;
    (void)size;
    b->listed++;
    if (!b->snapshot)
        return 0;
    b->snapshot->adds = info->dlpi_adds;
    b->snapshot->subs = info->dlpi_subs;
    b->snapshot->is_whole &= snapshot_add(b, info);
    return 0;
}

static size_t snapshot_bytes(size_t objects) {
    return whole_pages(sizeof(struct module_snapshot) +
                       objects * (sizeof(struct harvest_module) + sizeof(ElfW(Phdr) *) +
                                  MODULE_PATH_BYTES + MAX_BUILD_ID_BYTES));
}

struct module_snapshot *module_snapshot_take(const struct module_names *names) {
    struct builder b = {.names = names};
    dl_iterate_phdr(snapshot_add_object, &b);
    const size_t capacity = b.listed + LOADED_MEANWHILE;
    const size_t bytes = snapshot_bytes(capacity);
    struct module_snapshot *const snapshot = profiler_memory_take(bytes);
    if (!snapshot)
        return NULL;
    snapshot->mapping_size = bytes;
    snapshot->capacity = capacity;
    snapshot->headers = (void *)&snapshot->modules[capacity];
    snapshot->text = (char *)&snapshot->headers[capacity];
    snapshot->text_end = (char *)snapshot + bytes;
    snapshot->is_whole = true;
    b = (struct builder){.names = names, .snapshot = snapshot};
    dl_iterate_phdr(snapshot_add_object, &b);
    return snapshot;
}

/* --- updating --- */

struct update {
    struct builder builder;
    void (*begin)(void *arg);
    void *arg;
    uint64_t adds; /* the loader's counters now */
    uint64_t subs;
    size_t before;  /* the number of modules before the update */
    size_t matched; /* modules before this one were found in the list, or have left the list */
    enum snapshot_update result;
};

static bool is_listed_as(const struct module_snapshot *snapshot, size_t at,
                         const struct dl_phdr_info *info) {
    return snapshot->modules[at].load_bias == info->dlpi_addr &&
           snapshot->headers[at] == info->dlpi_phdr;
}

/* Compares the loader's counters, which come with each object of the list, with the snapshot's.
 * Returns false if the list need not be read: nothing has changed, or the snapshot is outdated. */
static bool snapshot_begin_update(struct update *update, const struct dl_phdr_info *info) {
    const struct module_snapshot *const snapshot = update->builder.snapshot;
    update->adds = info->dlpi_adds;
    update->subs = info->dlpi_subs;
    if (update->adds == snapshot->adds && update->subs == snapshot->subs)
        return false;
    update->begin(update->arg);
    if (update->subs == snapshot->subs)
        update->result = SNAPSHOT_GREW;
    else
        update->result = update->adds == snapshot->adds ? SNAPSHOT_SHRANK : SNAPSHOT_OUTDATED;
    return update->result != SNAPSHOT_OUTDATED;
}

static bool grow(struct update *update, const struct dl_phdr_info *info) {
    if (update->matched == update->before)
        return snapshot_add(&update->builder, info);
    return is_listed_as(update->builder.snapshot, update->matched++, info);
}

/* Marks the modules in front of this object that are no longer in the list. Returns false if the
 * object is not a module of the snapshot. */
static bool shrink(struct update *update, const struct dl_phdr_info *info) {
    struct module_snapshot *const snapshot = update->builder.snapshot;
    for (; update->matched < update->before; update->matched++) {
        if (is_listed_as(snapshot, update->matched, info)) {
            update->matched++;
            return true;
        }
        snapshot->modules[update->matched].unloaded = true;
    }
    return false;
}

static int update_by_object(struct dl_phdr_info *info, size_t size, void *arg) {
    struct update *const update = arg;
    (void)size;
    if (update->builder.listed++ == 0 && !snapshot_begin_update(update, info))
        return 1;
    const bool fits = update->result == SNAPSHOT_GREW ? grow(update, info) : shrink(update, info);
    if (!fits)
        update->result = SNAPSHOT_OUTDATED;
    return !fits;
}

/* Restores the snapshot as it was before the update. */
static void undo_update(struct update *update, char *text) {
    struct module_snapshot *const snapshot = update->builder.snapshot;
    snapshot->text = text;
    snapshot->count = update->before;
    for (size_t i = 0; i < snapshot->count; i++)
        snapshot->modules[i].unloaded = false;
}

enum snapshot_update module_snapshot_update(struct module_snapshot *snapshot,
                                            const struct module_names *names,
                                            void (*begin)(void *arg), void *arg) {
    struct update update = {.builder = {.names = names, .snapshot = snapshot},
                            .begin = begin,
                            .arg = arg,
                            .before = snapshot->count,
                            .result = SNAPSHOT_CURRENT};
    char *const text = snapshot->text;
    dl_iterate_phdr(update_by_object, &update);
    if (update.result == SNAPSHOT_CURRENT)
        return update.result;
    if (update.result == SNAPSHOT_GREW && update.matched < update.before)
        update.result = SNAPSHOT_OUTDATED; /* the list has become shorter without an unload */
    if (update.result == SNAPSHOT_OUTDATED || !snapshot->is_whole) {
        undo_update(&update, text);
        return SNAPSHOT_OUTDATED;
    }
    for (; update.result == SNAPSHOT_SHRANK && update.matched < update.before; update.matched++)
        snapshot->modules[update.matched].unloaded = true;
    snapshot->adds = update.adds;
    snapshot->subs = update.subs;
    return update.result;
}

/* Gives back the room of the module's strings if they were added last. So a library that is loaded
 * and unloaded again and again needs no more room. */
static void give_back_text(struct module_snapshot *snapshot, const struct harvest_module *module) {
    const char *const start = module->path;
    const size_t path_bytes = strlen(start) + 1;
    const char *const end = module->build_id
                                ? (const char *)module->build_id + module->build_id_size
                                : start + path_bytes;
    if (end == snapshot->text && end >= start)
        snapshot->text -= end - start;
}

void module_snapshot_remove_unloaded(struct module_snapshot *snapshot) {
    size_t kept = 0;
    for (size_t i = snapshot->count; i > 0; i--)
        if (snapshot->modules[i - 1].unloaded)
            give_back_text(snapshot, &snapshot->modules[i - 1]);
    for (size_t i = 0; i < snapshot->count; i++) {
        if (snapshot->modules[i].unloaded)
            continue;
        if (kept != i) {
            snapshot->modules[kept] = snapshot->modules[i];
            snapshot->headers[kept] = snapshot->headers[i];
        }
        kept++;
    }
    snapshot->count = kept;
}

/* --- comparing --- */

bool module_snapshot_is_current(const struct module_snapshot *snapshot) {
    const struct loader_counters now = loader_counters_read();
    return snapshot->adds == now.adds && snapshot->subs == now.subs;
}

/* Compares build ids, because a path may lead to another file by now: a plug-in that was rebuilt
 * and loaded again. */
static bool is_same_build(const struct harvest_module *a, const struct harvest_module *b) {
    if (!a->build_id || !b->build_id)
        return !a->build_id && !b->build_id;
    return a->build_id_size == b->build_id_size &&
           memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

bool module_is_same(const struct harvest_module *a, const struct harvest_module *b) {
    return a->start == b->start && a->end == b->end && a->load_bias == b->load_bias &&
           a->text_start == b->text_start && a->text_end == b->text_end &&
           a->eh_frame_hdr == b->eh_frame_hdr && a->eh_frame_hdr_size == b->eh_frame_hdr_size &&
           is_same_build(a, b) && strcmp(a->path, b->path) == 0;
}
