#include "symbolize.h"

#include "arena.h"
#include "clock.h"
#include "demangle.h"
#include "dwarf_lines.h"
#include "files/file_hash.h"
#include "generated_names.h"
#include "intern.h"
#include "symbol_source.h"
#include "variable_at.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* Says after how many exports a process counts as running for long: then inflating debug
     * information is worth its cost. Large debug information, or information that is large once
     * inflated, waits until then. */
    LONG_RUN_EXPORTS = 3,
    MAX_CHEAP_DWARF = 32 << 20,
    MAX_CHEAP_INFLATED = 256 << 10, /* bytes whose inflation takes 1 ms, and is always allowed */
    /* Bounds the bytes of debug information that are open at a time. A larger file is opened
     * alone. */
    MAX_OPEN_DWARF = 64 << 20,
    /* Sets the bytes of debug information that an export may read on average, not counting the
     * first read of each file: some 4 ms of CPU time. Inflating a byte takes as long as copying
     * ten. */
    DWARF_AN_EXPORT = 8 << 20,
    INFLATING_COSTS = 10,
    /* libdw allocates a byte for this number of bytes of debug information while it finds
     * addresses */
    LIBDW_ADDS = 2,
    MAX_MODULES = 512,
    MAX_CACHE_BYTES = 32 << 20,
    /* Bounds the bytes of all tables of symbols that are kept between exports: 130,000
     * functions. */
    MAX_KEPT_TABLES = 1 << 20,
    /* If more than MAX_IDLE files were not used in the last IDLE_EXPORTS exports, they are
     * forgotten. */
    IDLE_EXPORTS = 6,
    MAX_IDLE = 64,
    /* Bounds the names that are demangled without a timer. The costliest known names (nested
     * conversion operators, each in the template arguments of the previous one) take 0.1 ms at this
     * length, and twice as long for each six bytes more. */
    MAX_UNTIMED_NAME = 64,
    LEAST_PASS_MS = 1000,
    /* Bounds the variables looked up in an export, because for each of them all symbols of a file
     * are read. */
    MAX_NEW_VARIABLES = 32,
};

/* Limits pieces of work, which are abandoned beyond these budgets. Ordinary work takes a hundredth
 * of them: tens of milliseconds for the largest units of debug information, 0.1 ms for a name of
 * 500 bytes. */
static const struct work_budget file_budget = {2000 * NANO_PER_MILLI, 128 << 20};
static const struct work_budget name_budget = {50 * NANO_PER_MILLI, 1 << 20};

struct resolved {
    size_t count;
    struct symbol_line *lines;
    unsigned export; /* number of the export in which this result was found */
    bool partial;    /* some debug information was skipped that may be read in a later export */
    bool postponed;  /* another lookup is due: this one had no time, or no memory */
};

struct symbolizer {
    enum symbols mode;
    memory_guard *guarded;
    /* NULL: losses are not counted, and the time for names is unlimited */
    const struct capture_api *api;
    uint64_t pass_end;   /* the helper's CPU time at which this export's time for names ends */
    uint64_t dwarf_room; /* bytes that debug information may take in this export */
    bool no_names;       /* there is no memory for names of new addresses */
    unsigned variables;  /* number of variables looked up in this export */
    bool logged_excess;
    bool logged_postponed;
    struct symbol_source *sources[MAX_MODULES];
    size_t source_count;
    unsigned exports;
    uint64_t dwarf_open; /* bytes of debug information that are open */
    uint64_t dwarf_debt; /* bytes that were read, and are not yet balanced by later exports */
    struct arena arena;  /* resolved addresses and their names */
    struct intern addresses;
    struct arena_list results; /* struct resolved, by number of the address */
    struct generated_names *generated;
    char name[MAX_SYMBOL_NAME];
};

struct symbolizer *symbolizer_open(enum symbols mode, memory_guard *guarded) {
    struct symbolizer *const s = calloc(1, sizeof *s);
    if (s)
        *s = (struct symbolizer){.mode = mode, .guarded = guarded, .dwarf_room = UINT64_MAX};
    return s;
}

void symbolizer_set_api(struct symbolizer *s, const struct capture_api *api) {
    s->api = api;
}

/* --- budgets --- */

void symbolizer_limit(struct symbolizer *s, uint64_t dwarf_room, bool named) {
    s->dwarf_room = dwarf_room;
    s->no_names = !named;
}

static bool pass_is_over(struct symbolizer *s) {
    if (s->no_names)
        return true;
    if (!s->api || s->api->counters.helper_cpu_nano() < s->pass_end)
        return false;
    if (!s->logged_postponed)
        log_debug(s->api->log, "naming what is new takes longer than an interval: what is left is "
                               "named in later exports");
    s->logged_postponed = true;
    return true;
}

static void count_excess(struct symbolizer *s, const struct symbol_source *source) {
    if (!s->api)
        return;
    s->api->counters.count_drop(DROP_NAME, 1);
    if (!s->logged_excess)
        log_debug(s->api->log,
                  "names in %s take more CPU time or memory than they may: they are left as "
                  "addresses, or mangled",
                  source->path);
    s->logged_excess = true;
}

static void forget_addresses(struct symbolizer *s) {
    arena_free(&s->arena);
    s->addresses = (struct intern){0};
    s->results = (struct arena_list){0};
}

void symbolizer_close(struct symbolizer *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->source_count; i++)
        symbol_source_close(s->sources[i]);
    forget_addresses(s);
    generated_names_close(s->generated);
    free(s);
}

static bool is_idle(const struct symbolizer *s, const struct symbol_source *source) {
    return s->exports - source->used > IDLE_EXPORTS;
}

static void close_idle(struct symbolizer *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->source_count; i++) {
        if (is_idle(s, s->sources[i]))
            symbol_source_close(s->sources[i]);
        else
            s->sources[kept++] = s->sources[i];
    }
    s->source_count = kept;
    /* addresses are forgotten, too, because their keys are the sources' addresses */
    forget_addresses(s);
}

void symbolizer_trim(struct symbolizer *s) {
    size_t idle = 0;
    s->exports++;
    s->variables = 0;
    if (s->api) {
        const uint64_t interval = s->api->config->interval_ms;
        const uint64_t milliseconds = interval > LEAST_PASS_MS ? interval : LEAST_PASS_MS;
        s->pass_end = s->api->counters.helper_cpu_nano() + milliseconds * NANO_PER_MILLI;
    }
    generated_names_begin(&s->generated, s->guarded, s->api);
    for (size_t i = 0; i < s->source_count; i++)
        idle += is_idle(s, s->sources[i]);
    if (idle > MAX_IDLE)
        close_idle(s);
    if (s->arena.total > MAX_CACHE_BYTES || s->arena.failed)
        forget_addresses(s);
    s->dwarf_debt -= s->dwarf_debt < DWARF_AN_EXPORT ? s->dwarf_debt : DWARF_AN_EXPORT;
}

void symbolizer_close_files(struct symbolizer *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->source_count; i++) {
        struct symbol_source *const source = s->sources[i];
        const size_t bytes = source->table.count * sizeof *source->table.index;
        symbol_source_close_file(source);
        if (kept + bytes > MAX_KEPT_TABLES)
            symbol_source_forget_table(source);
        else
            kept += bytes;
    }
    s->dwarf_open = 0;
    generated_names_close_files(s->generated);
}

/* --- sources --- */

static struct symbol_source *known_source(const struct symbolizer *s,
                                          const struct harvest_module *module) {
    for (size_t i = 0; i < s->source_count; i++)
        if (symbol_source_is_of(s->sources[i], module))
            return s->sources[i];
    return NULL;
}

static struct symbol_source *source_of(struct symbolizer *s, const struct harvest_module *module) {
    struct symbol_source *source = known_source(s, module);
    if (!source && s->source_count < MAX_MODULES && (source = symbol_source_new(module)))
        s->sources[s->source_count++] = source;
    if (source)
        source->used = s->exports;
    return source;
}

/* --- files --- */

/* Describes a piece of work. */
struct task {
    struct symbolizer *symbolizer;
    struct symbol_source *source;
    const struct harvest_module *module;
    uint64_t address; /* address in the file */
    bool variable;    /* the address is the address of a variable, not of a function */
    struct symbol_line *lines;
    size_t max;
    size_t count;
    bool partial;
};

static uint64_t dwarf_room_left(const struct symbolizer *s) {
    return s->dwarf_room > s->dwarf_open ? s->dwarf_room - s->dwarf_open : 0;
}

static void open_file(void *arg) {
    const struct task *const task = arg;
    struct symbol_source *const source = task->source;
    if (!source->opened)
        (void)elf_file_open(&source->file, task->module);
    source->opened = true;
}

static void open_debug_files(void *arg) {
    const struct task *const task = arg;
    struct symbol_source *const source = task->source;
    open_file(arg);
    if (source->searched)
        return;
    if (elf_sections_are_open(&source->file.parts[PART_MAIN]))
        elf_file_open_debug_files(&source->file, task->module);
    symbol_source_load_table(source, dwarf_room_left(task->symbolizer));
    source->searched = true;
}

/* Returns true if so many bytes of debug information may be read now. */
static bool is_affordable(const struct symbolizer *s, const struct symbol_source *source,
                          uint64_t bytes, bool compressed) {
    if (s->exports < LONG_RUN_EXPORTS &&
        bytes > (compressed ? MAX_CHEAP_INFLATED : MAX_CHEAP_DWARF))
        return false;
    if (s->dwarf_open + bytes + bytes / LIBDW_ADDS > s->dwarf_room)
        return false;
    if (s->dwarf_open && s->dwarf_open + bytes > MAX_OPEN_DWARF)
        return false;
    return !source->dwarf_read || s->dwarf_debt == 0;
}

static void open_dwarf(struct symbolizer *s, struct symbol_source *source) {
    bool compressed;
    const uint64_t bytes = elf_file_dwarf_bytes(&source->file, &compressed);
    source->dwarf_tried = true;
    source->deferred = bytes && !is_affordable(s, source, bytes, compressed);
    if (!bytes || source->deferred)
        return;
    source->dwarf_read = true;
    s->dwarf_open += bytes;
    s->dwarf_debt += compressed ? INFLATING_COSTS * bytes : bytes;
    if (elf_file_open_dwarf(&source->file))
        source->functions = dwarf_functions_open(&source->file.debug);
}

static void find_lines(void *arg) {
    struct task *const task = arg;
    struct symbol_source *const source = task->source;
    if (!source->dwarf_tried)
        open_dwarf(task->symbolizer, source);
    task->partial = source->deferred;
    if (source->functions)
        task->count =
            dwarf_lines(source->functions, task->address, task->lines, task->max, &task->partial);
}

/* --- under the guard --- */

static bool try_open(struct task *task, void (*open)(void *arg)) {
    struct symbol_source *const source = task->source;
    if (source->abandoned || source->searched)
        return !source->abandoned;
    if (task->symbolizer->guarded(open, task, &file_budget))
        return true;
    source->abandoned = true;
    count_excess(task->symbolizer, source);
    elf_file_abandon(&source->file);
    source->functions = NULL;
    source->table = (struct symbol_table){0}; /* drops the table, which may be incomplete */
    return false;
}

static void find_lines_guarded(struct task *task) {
    struct symbol_source *const source = task->source;
    if (source->lines_abandoned || task->symbolizer->mode != SYMBOLS_LINES)
        return;
    if (task->symbolizer->guarded(find_lines, task, &file_budget))
        return;
    source->lines_abandoned = true;
    count_excess(task->symbolizer, source);
    elf_file_abandon_dwarf(&source->file);
    source->functions = NULL;
    task->count = 0;
    task->partial = false;
}

/* Computes the hash. The vDSO, which has no file, needs none. */
static bool find_hash(struct task *task) {
    struct symbol_source *const source = task->source;
    const bool in_memory = strcmp(source->path, "[vdso]") == 0;
    if (!in_memory && !try_open(task, open_file))
        return false;
    const int descriptor = source->file.parts[PART_MAIN].descriptor;
    return (in_memory || descriptor >= 0) && file_hash(descriptor, task->module, source->htlhash);
}

const char *symbolizer_htlhash(struct symbolizer *s, const struct harvest_module *module) {
    struct symbol_source *const source = source_of(s, module);
    struct task task = {.symbolizer = s, .source = source, .module = module};
    if (!source)
        return NULL;
    if (!source->hashed && !find_hash(&task))
        source->htlhash[0] = 0;
    source->hashed = true;
    return source->htlhash[0] ? source->htlhash : NULL;
}

/* --- one address --- */

/* Returns the readable form, malloc'ed; NULL: the name stays unchanged. */
static char *readable_name(struct symbolizer *s, struct symbol_source *source, const char *name) {
    char *text = NULL;
    if (!is_mangled(name) || symbol_source_is_costly(source, name))
        return NULL;
    if (s->api && !s->api->guard.is_timed() && strnlen(name, MAX_UNTIMED_NAME) == MAX_UNTIMED_NAME)
        return NULL;
    if (demangle_within(s->guarded, &name_budget, name, &text))
        return text;
    symbol_source_note_costly(source, name);
    count_excess(s, source);
    return NULL;
}

/* Copies a line from libdw or the table into the symbolizer's arena, with readable names. */
static void keep_line(struct symbolizer *s, struct symbol_source *source,
                      struct symbol_line *line) {
    char *const readable = readable_name(s, source, line->system_name);
    const char *const function = readable ? readable : line->system_name;
    line->function = arena_copy(&s->arena, function, strlen(function));
    line->system_name = arena_copy(&s->arena, line->system_name, strlen(line->system_name));
    line->file = arena_copy(&s->arena, line->file, strlen(line->file));
    free(readable);
}

/* Returns the symbol's name, until the next call; NULL: there is no name, or no symbol was
 * found. */
static const char *symbol_name(struct task *task, const struct symbol *symbol) {
    struct symbolizer *const s = task->symbolizer;
    const struct symbol_source *const source = task->source;
    return symbol->end && symbol_table_name(&source->table, symbol, &source->file, s->name)
               ? s->name
               : NULL;
}

/* Names the compiled function. Debug information may have no name for it, a name without its scope
 * (functions of an unnamed namespace, lambdas), or a name that is known only in its file (libc's
 * malloc is __GI___libc_malloc there). Then the symbol's name is better, and agrees with exports
 * from before debug information was read. Returns false if there is no name. */
static bool name_outermost(struct task *task, const struct symbol *symbol) {
    struct symbol_line *const line = &task->lines[task->count - 1];
    if (line->system_name && is_mangled(line->system_name))
        return true;
    const char *const name = symbol_name(task, symbol);
    if (name && (!line->system_name || is_mangled(name) || symbol_is_public(symbol)))
        line->system_name = name;
    return line->system_name != NULL;
}

static size_t find_address(struct task *task) {
    if (!try_open(task, open_debug_files))
        return 0;
    if (task->variable) {
        struct symbolizer *const s = task->symbolizer;
        uint64_t offset;
        if (!variable_at(&task->source->file, task->address, s->name, &offset))
            return 0;
        task->lines[0] = (struct symbol_line){.system_name = s->name, .file = "", .offset = offset};
        return 1;
    }
    find_lines_guarded(task);
    struct symbol symbol;
    (void)symbol_table_find(&task->source->table, &task->source->file, task->address, &symbol);
    if (task->count > 0 && name_outermost(task, &symbol))
        return task->count;
    const char *const name = symbol_name(task, &symbol);
    if (!name)
        return 0;
    task->lines[0] = (struct symbol_line){.system_name = name, .file = ""};
    return 1;
}

static struct resolved *symbolizer_resolve(struct symbolizer *s,
                                           const struct harvest_module *module, uint64_t address,
                                           bool variable) {
    struct symbol_line lines[MAX_SYMBOL_LINES];
    struct symbol_source *const source = source_of(s, module);
    struct resolved *const result = arena_take(&s->arena, sizeof *result);
    if (!source || !result || s->mode == SYMBOLS_NONE)
        return result;
    result->export = s->exports;
    result->postponed = pass_is_over(s) || (variable && s->variables++ >= MAX_NEW_VARIABLES);
    if (result->postponed)
        return result;
    struct task task = {.symbolizer = s,
                        .source = source,
                        .module = module,
                        .address = address - module->load_bias,
                        .variable = variable,
                        .lines = lines,
                        .max = MAX_SYMBOL_LINES};
    const size_t count = find_address(&task);
    result->lines = arena_take(&s->arena, (count + 1) * sizeof *lines);
    for (size_t i = 0; result->lines && i < count; i++) {
        keep_line(s, source, &lines[i]);
        result->lines[i] = lines[i];
    }
    result->count = result->lines && !s->arena.failed ? count : 0;
    result->partial = task.partial;
    result->postponed = source->table_deferred && count == 0;
    return result;
}

/* Returns true if another lookup may find more now. */
static bool is_due(const struct symbolizer *s, const struct symbol_source *source,
                   const struct resolved *result) {
    if (!result || result->export == s->exports)
        return false;
    if (!result->partial)
        return result->postponed;
    if (source->dwarf_tried)
        return !source->deferred;
    return s->exports >= LONG_RUN_EXPORTS && (s->dwarf_debt == 0 || !source->dwarf_read);
}

/* Returns the result for the address; NULL: there is no memory for it. */
static const struct resolved *resolved_at(struct symbolizer *s, const struct harvest_module *module,
                                          uint64_t address, bool variable) {
    bool is_new;
    const struct symbol_source *const source = source_of(s, module);
    const uint64_t key[] = {(uintptr_t)source, address - module->load_bias, variable};
    const int32_t number = intern(&s->arena, &s->addresses, key, sizeof key, &is_new);
    if (number < 0)
        return NULL;
    /* no new address is named until the next trim, because after a failure numbers and results
     * disagree */
    if (is_new &&
        ((size_t)number != s->results.count ||
         !arena_list_add(&s->arena, &s->results, symbolizer_resolve(s, module, address, variable))))
        return NULL;
    const struct resolved *result =
        (size_t)number < s->results.count ? s->results.items[number] : NULL;
    if (is_due(s, source, result))
        result = s->results.items[number] = symbolizer_resolve(s, module, address, variable);
    return result;
}

static size_t found_at(struct symbolizer *s, const struct harvest_module *module, uint64_t address,
                       bool variable, struct symbol_line *lines, size_t max) {
    const struct resolved *const result = resolved_at(s, module, address, variable);
    if (!result || result->count == 0)
        return 0;
    const size_t count = result->count < max ? result->count : max;
    memcpy(lines, result->lines, count * sizeof *lines);
    return count;
}

size_t symbolizer_lines(struct symbolizer *s, const struct harvest_module *module, uint64_t address,
                        struct symbol_line *lines, size_t max) {
    return found_at(s, module, address, false, lines, max);
}

bool symbolizer_variable(struct symbolizer *s, const struct harvest_module *module,
                         uint64_t address, struct symbol_line *variable) {
    return found_at(s, module, address, true, variable, 1) == 1;
}

bool symbolizer_generated(struct symbolizer *s, const struct harvest_module *modules, size_t count,
                          uint64_t address, struct generated_name *found) {
    return s->mode != SYMBOLS_NONE && !pass_is_over(s) &&
           generated_names_find(s->generated, modules, count, address, found);
}
