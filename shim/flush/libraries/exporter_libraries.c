#include "exporter_libraries.h"

#include "exporter_bindings.h"
#include "object_segments.h"
#include "object_tables.h"

#include <stdint.h>
#include <string.h>

/* Names a function of libotelprof.so to take the place of DT_FINI: the function does nothing, and
 * its object is never unloaded. */
extern const char *otelprof_version(void) __attribute__((weak));

/* Counts the destructors that gcc's start files give each library; any further destructor is the
 * library's own. */
enum { COMMON_DESTRUCTORS = 1 };

/* Holds the results of exporter_libraries_protect(); read-only afterwards, and in forked children.
 */
static struct {
    /* number of objects in the list from libotelprof-flush.so on; 0: linked into a program */
    size_t count;
    bool outlive_exit;
} libraries;

/* --- finding them --- */

struct walk {
    void (*visit)(const struct dl_phdr_info *library, void *arg);
    void *arg;
    bool found_own;
    bool others; /* true: visits the other objects instead */
    size_t left;
};

static int exporter_libraries_walk(struct dl_phdr_info *info, size_t size, void *arg) {
    struct walk *const walk = arg;
    (void)size;
    walk->found_own |= object_spans(info, (uintptr_t)(void *)exporter_libraries_walk);
    const bool is_exporter = walk->found_own && walk->left > 0;
    if (is_exporter)
        walk->left--;
    if (is_exporter != walk->others)
        walk->visit(info, walk->arg);
    return 0;
}

void exporter_libraries_visit(void (*visit)(const struct dl_phdr_info *library, void *arg),
                              void *arg) {
    struct walk walk = {.visit = visit, .arg = arg, .left = libraries.count};
    dl_iterate_phdr(exporter_libraries_walk, &walk);
}

void exporter_libraries_visit_others(void (*visit)(const struct dl_phdr_info *object, void *arg),
                                     void *arg) {
    struct walk walk = {.visit = visit, .arg = arg, .others = true, .left = libraries.count};
    dl_iterate_phdr(exporter_libraries_walk, &walk);
}

/* Counts the exporter's libraries: 0 if libotelprof-flush.so's sources are linked into a program,
 * which has no name in the list.
 */
static int count_library(struct dl_phdr_info *info, size_t size, void *arg) {
    size_t *const count = arg;
    (void)size;
    if (*count == 0 && !object_spans(info, (uintptr_t)(void *)count_library))
        return 0;
    if (info->dlpi_name[0] == 0)
        return 1;
    ++*count;
    return 0;
}

/* --- protecting them --- */

static int ignore_registration(void (*function)(void *), void *arg, void *object) {
    (void)function;
    (void)arg;
    (void)object;
    return 0;
}

/* Replaces DT_FINI, the offset of the function that the loader will call. Returns false if DT_FINI
 * is invalid, or there is no function to take its place. */
static bool remove_fini(const struct object_tables *tables) {
    ElfW(Dyn) *const entry = dynamic_entry(&tables->dynamic, DT_FINI);
    if (!entry)
        return true;
    if (!object_has(&tables->segments, tables->segments.bias + entry->d_un.d_ptr, 1, PF_R | PF_X))
        return false;
    entry->d_un.d_ptr = (uintptr_t)(void *)otelprof_version - tables->segments.bias;
    return otelprof_version != NULL;
}

static bool remove_fini_array(const struct object_tables *tables) {
    const ElfW(Dyn) *const list = dynamic_entry(&tables->dynamic, DT_FINI_ARRAY);
    ElfW(Dyn) *const size = dynamic_entry(&tables->dynamic, DT_FINI_ARRAYSZ);
    if (!list || !size)
        return !list;
    if (!object_has(&tables->segments, tables->segments.bias + list->d_un.d_ptr, size->d_un.d_val,
                    PF_R))
        return false;
    size->d_un.d_val = 0;
    return true;
}

static bool remove_exit_calls(const struct dl_phdr_info *library) {
    struct object_tables tables;
    if (!object_tables_open(&tables, library) ||
        !object_has(&tables.segments, (uintptr_t)tables.dynamic.entries, 1, PF_W) ||
        !object_tables_unlock(&tables))
        return false;
    const bool is_protected = remove_fini_array(&tables) && remove_fini(&tables);
    uintptr_t *const slot = object_tables_import(&tables, "__cxa_atexit");
    if (slot)
        *slot = (uintptr_t)(void *)ignore_registration;
    object_tables_lock(&tables);
    /* C++ code registers destructors when it constructs objects, perhaps before this constructor
     * runs */
    return is_protected && !object_tables_need(&tables, "libstdc++.so.6") &&
           !object_tables_need(&tables, "libc++.so.1");
}

static void protect_library(const struct dl_phdr_info *library, void *arg) {
    (void)arg;
    libraries.outlive_exit &= remove_exit_calls(library);
}

/* --- libraries shared with the program --- */

struct need {
    const char *soname;
    bool is_needed;
};

static void check_need(const struct dl_phdr_info *library, void *arg) {
    struct need *const need = arg;
    struct object_tables tables;
    if (object_tables_open(&tables, library) && object_tables_need(&tables, need->soname))
        need->is_needed = true;
}

bool exporter_libraries_need(const char *soname) {
    struct need need = {.soname = soname};
    exporter_libraries_visit(check_need, &need);
    return need.is_needed;
}

/* Checks the objects that precede libotelprof-flush.so in the list: an object that the exporter
 * needs, and that has destructors or exit handlers, is torn down at the end of the process. */
static int check_shared_library(struct dl_phdr_info *info, size_t size, void *arg) {
    struct object_tables tables;
    (void)size;
    (void)arg;
    if (object_spans(info, (uintptr_t)(void *)check_shared_library))
        return 1;
    if (!object_tables_open(&tables, info))
        return 0;
    const ElfW(Dyn) *const bytes = dynamic_entry(&tables.dynamic, DT_FINI_ARRAYSZ);
    const bool has_destructors = bytes && bytes->d_un.d_val > COMMON_DESTRUCTORS * sizeof(void *);
    if (!has_destructors && !object_tables_import(&tables, "__cxa_atexit"))
        return 0;
    const char *const soname = object_tables_soname(&tables);
    if (soname && exporter_libraries_need(soname))
        libraries.outlive_exit = false;
    return 0;
}

bool exporter_libraries_protect(void) {
    dl_iterate_phdr(count_library, &libraries.count);
    libraries.outlive_exit = libraries.count > 0;
    exporter_libraries_visit(protect_library, NULL);
    dl_iterate_phdr(check_shared_library, NULL);
    return libraries.count > 0;
}

bool exporter_libraries_outlive_exit(void) {
    return libraries.outlive_exit;
}
