/* Implements the adaptor for C++ programs with OpenTelemetry's API (libotelprof-cpp.so): decides
 * which storages are followed. */
#include "cpp_context.h"
#include "known_classes.h"
#include "loaded_ranges.h"
#include "object_build.h"
#include "object_segments.h"
#include "readable_memory.h"
#include "release.h"
#include "storage_calls.h"
#include "storage_table.h"
#include "thread_spans.h"

#include <link.h>
#include <stdbool.h>
#include <string.h>

/* Describes a storage that is followed, by addresses. */
struct followed {
    struct cpp_object object; /* its name was found there */
    uintptr_t table;          /* 0: the entry is free */
    uint64_t build;           /* object_build() of the object */
    bool loaded;              /* this scan has found the object loaded */
};

struct scan {
    struct cpp_object *objects;
    size_t count;
};

/* Lists the followed storages; only the helper uses the list. */
static struct followed followed[MOST_STORAGES];

__attribute__((visibility("default"))) extern const char otelprof_cpp_release[];
const char otelprof_cpp_release[] = OTELPROF_RELEASE;

static bool is_readable_in(const struct dl_phdr_info *object, uintptr_t address, size_t size) {
    const struct object_segments segments = object_segments_of(object);
    return object_is_readable(&segments, address, size) && readable_memory(address, size) == size;
}

/* --- one object --- */

/* Returns true if the storage's name is still where it was found: the object may be unloaded, and
 * another one loaded at its address. */
static bool object_has_name(const struct dl_phdr_info *object, const struct cpp_object *named) {
    static const char *const names[] = {CPP_STORAGE_NAME("1"), CPP_STORAGE_NAME("2")};
    const size_t size = sizeof CPP_STORAGE_NAME("1");
    return is_readable_in(object, named->name, size) &&
           memcmp((const void *)named->name, names[named->abi - 1], size) == 0;
}

/* Returns true if this is the followed object. Another object or build may be at its address, or
 * the same object loaded again: then the table has the object's own functions. If the table has
 * neither these nor ours, the object is still followed: a library has replaced some of ours, and
 * calls them. */
static bool is_followed_object(unsigned number, const struct dl_phdr_info *object) {
    const struct followed *const f = &followed[number];
    return f->table && f->object.bias == object->dlpi_addr && f->build == object_build(object) &&
           object_has_name(object, &f->object) &&
           is_readable_in(object, f->table, STORAGE_FUNCTIONS * sizeof(uintptr_t)) &&
           !storage_calls_are_bypassed(number, (const uintptr_t *)f->table);
}

static int free_number(void) {
    for (int i = 0; i < MOST_STORAGES; i++)
        if (!followed[i].table)
            return i;
    return -1;
}

static enum cpp_outcome storage_follow(const struct dl_phdr_info *object,
                                       const struct cpp_object *named) {
    enum cpp_outcome outcome = CPP_NOT_LOADED;
    if (!object_has_name(object, named))
        return outcome;
    const uintptr_t table = storage_table_find(object, named->name, &outcome);
    const int number = free_number();
    if (!table)
        return outcome;
    if (number < 0)
        return CPP_TOO_MANY;
    storage_calls_follow((unsigned)number, (const uintptr_t *)table, named->abi);
    if (!storage_table_replace(table, storage_calls_get_current((unsigned)number),
                               storage_calls_attach((unsigned)number),
                               storage_calls_detach((unsigned)number)))
        return CPP_NOT_WRITABLE;
    followed[number] = (struct followed){*named, table, object_build(object), true};
    return CPP_FOLLOWED;
}

/* Returns the number of the object's storage that is followed already; -1: there is none. */
static int followed_in(const struct dl_phdr_info *object) {
    for (int i = 0; i < MOST_STORAGES; i++)
        if (followed[i].table && followed[i].loaded && followed[i].object.bias == object->dlpi_addr)
            return i;
    return -1;
}

static enum cpp_outcome follow_or_check(const struct dl_phdr_info *object,
                                        const struct cpp_object *named) {
    const int number = followed_in(object);
    if (number < 0)
        return storage_follow(object, named);
    return storage_calls_are_refused((unsigned)number) ? CPP_UNKNOWN_SHAPE : CPP_FOLLOWED;
}

/* --- all objects --- */

static int note_object(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size;
    (void)unused;
    loaded_ranges_add(object);
    for (unsigned i = 0; i < MOST_STORAGES; i++)
        if (is_followed_object(i, object))
            followed[i].loaded = true;
    return 0;
}

static int follow_object(struct dl_phdr_info *object, size_t size, void *arg) {
    const struct scan *const scan = arg;
    (void)size;
    for (size_t i = 0; i < scan->count; i++) {
        struct cpp_object *const named = &scan->objects[i];
        if (named->bias == object->dlpi_addr)
            named->outcome = follow_or_check(object, named);
    }
    return 0;
}

__attribute__((visibility("default"))) cpp_context_scan otelprof_cpp_scan;
void otelprof_cpp_scan(struct cpp_object *objects, size_t count) {
    struct scan scan = {objects, count};
    for (unsigned i = 0; i < MOST_STORAGES; i++)
        followed[i].loaded = false;
    loaded_ranges_begin();
    dl_iterate_phdr(note_object, NULL);
    for (unsigned i = 0; i < MOST_STORAGES; i++)
        if (!followed[i].loaded)
            followed[i].table = 0;
    loaded_ranges_end();
    known_classes_forget(); /* the cached classes were valid until now */
    dl_iterate_phdr(follow_object, &scan);
}
