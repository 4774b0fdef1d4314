#include "generated_names.h"

#include "clock.h"
#include "demangle.h"
#include "glob.h"
#include "intern.h"
#include "jit_objects.h"
#include "jitdump.h"
#include "perf_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_CACHE_BYTES = 8 << 20,
    PATH_BYTES = 64,
    /* A search for a jitdump file in /proc takes a millisecond or more if there are thousands of
     * mappings. So the search runs in the first EARLY_SCANS exports, and then once in
     * SCAN_EVERY. */
    EARLY_SCANS = 4,
    SCAN_EVERY = 8,
};

/* Has the same values as the budget in symbolize.c. */
static const struct work_budget name_budget = {50 * NANO_PER_MILLI, 1 << 20};

enum source { SOURCE_JITDUMP, SOURCE_PERF_MAP, SOURCES };

/* Holds the place where an address was found. */
struct place {
    enum source source;
    uint32_t number;
    uint64_t address;
};

struct generated_names {
    memory_guard *guarded;
    const struct capture_api *api; /* NULL: losses are not counted */
    pid_t pid;                     /* the process that made these reports */
    bool reports_read;             /* the reports were read in this export */
    enum runtime runtime;
    bool logged_excess;
    unsigned scan_count; /* number of exports that have read the reports */
    struct jitdump jitdump;
    struct perf_map perf_map;
    bool objects_read; /* `objects` was read in this export */
    struct jit_objects objects;
    /* Names that were read, found by source, number and address. */
    struct arena arena;
    struct intern known;
    struct arena_list results; /* struct generated_name, or NULL: it cannot be read */
};

static struct generated_names *generated_names_make(memory_guard *guarded) {
    struct generated_names *const names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->guarded = guarded;
    names->pid = getpid();
    jitdump_init(&names->jitdump);
    perf_map_init(&names->perf_map);
    return names;
}

static void forget_results(struct generated_names *names) {
    arena_free(&names->arena);
    names->known = (struct intern){0};
    names->results = (struct arena_list){0};
}

static void generated_names_forget(struct generated_names *names) {
    jitdump_close(&names->jitdump);
    perf_map_close(&names->perf_map);
    jit_objects_close(&names->objects);
    names->scan_count = 0;
    forget_results(names);
}

void generated_names_close(struct generated_names *names) {
    if (!names)
        return;
    generated_names_forget(names);
    free(names);
}

void generated_names_begin(struct generated_names **made, memory_guard *guarded,
                           const struct capture_api *api) {
    if (!*made)
        *made = generated_names_make(guarded);
    struct generated_names *const names = *made;
    if (!names)
        return;
    names->api = api;
    names->reports_read = false;
    names->objects_read = false;
    if (names->pid != getpid())
        generated_names_forget(names);
    names->pid = getpid();
    if (names->arena.total > MAX_CACHE_BYTES || names->arena.failed)
        forget_results(names);
}

void generated_names_close_files(struct generated_names *names) {
    if (!names)
        return;
    jit_objects_forget(&names->objects);
    jitdump_close_file(&names->jitdump);
    perf_map_close_file(&names->perf_map);
}

/* --- new reports --- */

static void generated_count_excess(struct generated_names *names, const char *what) {
    if (!names->api)
        return;
    names->api->counters.count_drop(DROP_NAME, 1);
    if (!names->logged_excess)
        log_debug(
            names->api->log,
            "%s reports more code than the limit: code that it reports from now on has no names",
            what);
    names->logged_excess = true;
}

static void read_perf_map(struct generated_names *names) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)names->pid);
    const enum perf_map_result result = perf_map_read(&names->perf_map, path);
    if (result == PERF_MAP_RESTARTED || result == PERF_MAP_EXCESS)
        forget_results(names);
    if (result == PERF_MAP_EXCESS)
        generated_count_excess(names, path);
}

/* Reads new records. If no file is known, or the known file cannot be opened any more, searches for
 * another, but not in each export. */
static void read_jitdump(struct generated_names *names) {
    enum jitdump_result result = jitdump_read(&names->jitdump);
    if (result == JITDUMP_NONE &&
        (names->scan_count < EARLY_SCANS || names->scan_count % SCAN_EVERY == 0) &&
        jitdump_scan(&names->jitdump, names->pid))
        result = jitdump_read(&names->jitdump);
    names->scan_count++;
    if (result == JITDUMP_RESTARTED || result == JITDUMP_EXCESS)
        forget_results(names);
    if (result == JITDUMP_EXCESS)
        generated_count_excess(names, names->jitdump.path);
}

static bool has_module(const struct harvest_module *modules, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(glob_base_name(modules[i].path), name) == 0)
            return true;
    return false;
}

/* --- one address --- */

/* Demangles names, because for example Numba and clang-repl report their linker's names. */
static void make_readable(struct generated_names *names, struct symbol_line *line) {
    char *text;
    if (!is_mangled(line->function) ||
        !demangle_within(names->guarded, &name_budget, line->function, &text) || !text)
        return;
    const char *const copy = arena_copy(&names->arena, text, strlen(text));
    if (copy)
        line->function = copy;
    free(text);
}

/* Sets the line from a jitdump file, unless the function's name has another file or a later first
 * line: such code was inlined. */
static void add_line(struct generated_names *names, const struct place *place,
                     struct symbol_line *line) {
    char file[PATH_MAX];
    if (place->source != SOURCE_JITDUMP)
        return;
    const int number = jitdump_line(&names->jitdump, place->number, place->address, file);
    const bool same = strcmp(file, line->file) == 0 && number >= line->start_line;
    if (!file[0] || (line->file[0] && !same))
        return;
    const char *const copy = arena_copy(&names->arena, file, strlen(file));
    line->line = copy ? number : 0;
    line->file = copy ? copy : line->file;
}

static struct generated_name *generated_read_name(struct generated_names *names,
                                                  const struct place *place) {
    char text[MAX_GENERATED_NAME];
    const bool is_read = place->source == SOURCE_JITDUMP
                             ? jitdump_name(&names->jitdump, place->number, text)
                             : perf_map_name(&names->perf_map, place->address, place->number, text);
    if (!is_read)
        return NULL;
    struct generated_name *const name = arena_take(&names->arena, sizeof *name);
    if (!name)
        return NULL;
    generated_name_read(&names->arena, text, names->runtime, name);
    make_readable(names, &name->line);
    add_line(names, place, &name->line);
    return name;
}

/* Returns the name; NULL if it cannot be read, or there is no memory. */
static const struct generated_name *known_name(struct generated_names *names,
                                               const struct place *place) {
    bool is_new;
    const uint64_t key[] = {(uint64_t)place->source << 32 | place->number, place->address};
    const int32_t known = intern(&names->arena, &names->known, key, sizeof key, &is_new);
    if (known < 0)
        return NULL;
    if (is_new &&
        ((size_t)known != names->results.count ||
         !arena_list_add(&names->arena, &names->results, generated_read_name(names, place))))
        return NULL;
    return (size_t)known < names->results.count ? names->results.items[known] : NULL;
}

static void generated_names_read_reports(struct generated_names *names,
                                         const struct harvest_module *modules, size_t count) {
    if (names->reports_read)
        return;
    names->reports_read = true;
    names->runtime = has_module(modules, count, "libjvm.so")  ? RUNTIME_JVM
                     : has_module(modules, count, "beam.smp") ? RUNTIME_BEAM
                                                              : RUNTIME_ANY;
    read_jitdump(names);
    read_perf_map(names);
}

/* Returns a name from an object in memory; NULL: there is none, or no memory. These names are not
 * cached, because they are valid only as long as the objects. */
static const struct generated_name *name_in_objects(struct generated_names *names,
                                                    const struct harvest_module *modules,
                                                    size_t count, uint64_t address) {
    if (!names->objects_read && !jit_objects_read(&names->objects, modules, count))
        generated_count_excess(names, "a compiler");
    names->objects_read = true;
    const char *const text = jit_objects_find(&names->objects, address);
    struct generated_name *const name =
        text && *text ? arena_take(&names->arena, sizeof *name) : NULL;
    if (!name)
        return NULL;
    generated_name_read(&names->arena, text, names->runtime, name);
    make_readable(names, &name->line);
    return name;
}

bool generated_names_find(struct generated_names *names, const struct harvest_module *modules,
                          size_t count, uint64_t address, struct generated_name *found) {
    const struct generated_name *name = NULL;
    if (!names)
        return false;
    generated_names_read_reports(names, modules, count);
    for (enum source source = SOURCE_JITDUMP; !name && source < SOURCES; source++) {
        struct place place = {.source = source, .address = address};
        const bool is_known = source == SOURCE_JITDUMP
                                  ? jitdump_find(&names->jitdump, address, &place.number)
                                  : perf_map_find(&names->perf_map, address, &place.number);
        name = is_known ? known_name(names, &place) : NULL;
    }
    if (!name)
        name = name_in_objects(names, modules, count, address);
    if (name)
        *found = *name;
    return name != NULL;
}
