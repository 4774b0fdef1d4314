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
    size_t count;
    size_t capacity;
    char *text;
    char *text_end;
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
    if (left + 1 + right >= MODULE_PATH_BYTES)
        return;
    memcpy(path, directory, left);
    path[left] = '/';
    memcpy(path + left + 1, name, right + 1);
}

/* Copies the absolute path of an object; the loader's name "" is the executable. */
static void copy_module_path(const struct builder *b, const struct dl_phdr_info *info, char *path) {
    const char *const name = info->dlpi_name ? info->dlpi_name : "";
    const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    path[0] = 0;
    if (vdso && vdso == info->dlpi_addr)
        memcpy(path, "[vdso]", sizeof "[vdso]");
    else if (b->first && name[0] == 0) {
        memcpy(path, b->names->executable, MODULE_PATH_BYTES);
    } else if (name[0] == '/') {
        if (strlen(name) < MODULE_PATH_BYTES)
            memcpy(path, name, strlen(name) + 1);
    } else if (name[0] && b->names->start_directory[0])
        join(path, b->names->start_directory, name);
}

static int snapshot_add_object(struct dl_phdr_info *info, size_t size, void *arg) {
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
    char path[MODULE_PATH_BYTES];
    module_snapshot_describe(module, info);
    copy_module_path(b, info, path);
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

static size_t snapshot_bytes(size_t objects) {
    return whole_pages(
        sizeof(struct module_snapshot) +
        objects * (sizeof(struct harvest_module) + MODULE_PATH_BYTES + MAX_BUILD_ID_BYTES));
}

struct module_snapshot *module_snapshot_take(const struct module_names *names) {
    struct builder b = {.names = names, .first = true};
    dl_iterate_phdr(snapshot_add_object, &b);
    const size_t capacity = b.count + LOADED_MEANWHILE;
    const size_t bytes = snapshot_bytes(capacity);
    void *const memory = profiler_memory_take(bytes);
    if (!memory)
        return NULL;
    b.snapshot = memory;
    b.capacity = capacity;
    b.count = 0;
    b.text = (char *)&b.snapshot->modules[capacity];
    b.text_end = (char *)memory + bytes;
    dl_iterate_phdr(snapshot_add_object, &b);
    b.snapshot->mapping_size = bytes;
    b.snapshot->count = b.count;
    b.snapshot->adds = b.adds;
    b.snapshot->subs = b.subs;
    return b.snapshot;
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
