#include "symbolize.h"

#include "arena.h"
#include "demangle.h"
#include "dwarf_lines.h"
#include "elf_file.h"
#include "file_hash.h"
#include "intern.h"
#include "symbol_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    /* Exports after which debug information is worth inflating: the process is here to stay. */
    PATIENT_EXPORTS = 3,
    MAX_MODULES = 512,
    MAX_CACHE_BYTES = 32 << 20,
    /* A program may load ever new libraries for as long as it runs: files that nobody has asked
     * for in so many exports are closed when there are more of them than that. */
    IDLE_EXPORTS = 6,
    MAX_IDLE = 64,
};

/* One file that was opened for symbols; kept for as long as it is asked for. */
struct symbol_source {
    char *path;
    uint8_t build_id[64];
    uint32_t build_id_size;
    unsigned used; /* `exports` of the symbolizer when it was last asked for */
    bool opened;
    bool thorough;      /* opened with all its debug information */
    bool abandoned;     /* memory ran out inside a library: `file` is not to be touched any more */
    struct stat status; /* of the file, when it was opened */
    struct elf_file file;
    struct dwarf_functions *functions; /* of `file`, once lines were asked for */
    struct symbol_table table;
    bool hashed;
    char htlhash[FILE_HASH_TEXT_BYTES]; /* "" = the file cannot be read */
};

struct resolved {
    size_t count;
    struct symbol_line *lines;
};

struct symbolizer {
    enum symbols mode;
    memory_guard *guarded;
    struct symbol_source *sources[MAX_MODULES];
    size_t source_count;
    unsigned exports;
    struct arena arena; /* resolved addresses and their names */
    struct intern addresses;
    struct arena_list results; /* struct resolved, by number of the address */
};

struct symbolizer *symbolizer_open(enum symbols mode, memory_guard *guarded) {
    struct symbolizer *const s = calloc(1, sizeof *s);
    if (s)
        *s = (struct symbolizer){.mode = mode, .guarded = guarded};
    return s;
}

static void close_file(struct symbol_source *source) {
    symbol_table_free(&source->table);
    source->table = (struct symbol_table){0};
    if (source->abandoned)
        return;
    dwarf_functions_close(source->functions);
    source->functions = NULL;
    elf_file_close(&source->file);
    source->opened = false;
    source->thorough = false;
}

static void close_source(struct symbol_source *source) {
    close_file(source);
    free(source->path);
    free(source);
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
        close_source(s->sources[i]);
    forget_addresses(s);
    free(s);
}

static bool is_idle(const struct symbolizer *s, const struct symbol_source *source) {
    return s->exports - source->used > IDLE_EXPORTS;
}

static void close_idle(struct symbolizer *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->source_count; i++) {
        if (is_idle(s, s->sources[i]))
            close_source(s->sources[i]);
        else
            s->sources[kept++] = s->sources[i];
    }
    s->source_count = kept;
    forget_addresses(s); /* their keys are the sources' addresses */
}

void symbolizer_trim(struct symbolizer *s) {
    size_t idle = 0;
    s->exports++;
    for (size_t i = 0; i < s->source_count; i++)
        idle += is_idle(s, s->sources[i]);
    if (idle > MAX_IDLE)
        close_idle(s);
    if (s->arena.total > MAX_CACHE_BYTES || s->arena.failed || s->exports == PATIENT_EXPORTS)
        forget_addresses(s);
}

/* --- sources --- */

static bool is_source_of(const struct symbol_source *source, const struct harvest_module *module) {
    return source->build_id_size == module->build_id_size &&
           (!module->build_id_size ||
            memcmp(source->build_id, module->build_id, module->build_id_size) == 0) &&
           strcmp(source->path, module->path) == 0;
}

static bool is_loaded(const struct symbol_source *source, const struct harvest_module *modules,
                      size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!modules[i].unloaded && is_source_of(source, &modules[i]))
            return true;
    return false;
}

static bool is_same_time(struct timespec a, struct timespec b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* In its place: what another file has replaced is still there for who has it open. */
static bool is_rewritten(const struct symbol_source *source) {
    const struct stat *const then = &source->status;
    struct stat now;
    return stat(source->path, &now) == 0 && now.st_ino == then->st_ino &&
           now.st_dev == then->st_dev &&
           (now.st_size != then->st_size || !is_same_time(now.st_mtim, then->st_mtim));
}

void symbolizer_close_changed(struct symbolizer *s, const struct harvest_module *modules,
                              size_t count) {
    for (size_t i = 0; i < s->source_count; i++) {
        struct symbol_source *const source = s->sources[i];
        if (source->opened && (!is_loaded(source, modules, count) || is_rewritten(source)))
            close_file(source);
    }
}

static struct symbol_source *new_source(const struct harvest_module *module) {
    struct symbol_source *const source = calloc(1, sizeof *source);
    char *const path = strdup(module->path);
    if (!source || !path || module->build_id_size > sizeof source->build_id) {
        free(source);
        free(path);
        return NULL;
    }
    source->path = path;
    source->build_id_size = module->build_id_size;
    if (module->build_id_size)
        memcpy(source->build_id, module->build_id, module->build_id_size);
    return source;
}

static struct symbol_source *known_source(const struct symbolizer *s,
                                          const struct harvest_module *module) {
    for (size_t i = 0; i < s->source_count; i++)
        if (is_source_of(s->sources[i], module))
            return s->sources[i];
    return NULL;
}

static struct symbol_source *added_source(struct symbolizer *s,
                                          const struct harvest_module *module) {
    struct symbol_source *const source = s->source_count < MAX_MODULES ? new_source(module) : NULL;
    if (source)
        s->sources[s->source_count++] = source;
    return source;
}

static struct symbol_source *source_of(struct symbolizer *s, const struct harvest_module *module) {
    struct symbol_source *const known = known_source(s, module);
    struct symbol_source *const source = known ? known : added_source(s, module);
    if (source)
        source->used = s->exports;
    return source;
}

/* --- libelf and libdw: under the guard --- */

/* What one call of the libraries is about. */
struct task {
    const struct symbolizer *symbolizer;
    struct symbol_source *source;
    const struct harvest_module *module;
    uint64_t address; /* in the file */
    struct symbol_line *lines;
    size_t max;
    size_t count;
};

static void open_file(void *arg) {
    const struct task *const task = arg;
    struct symbol_source *const source = task->source;
    const bool lines = task->symbolizer->mode == SYMBOLS_LINES;
    const bool patient = lines && task->symbolizer->exports >= PATIENT_EXPORTS;
    if (!source->opened && stat(source->path, &source->status) != 0)
        source->status = (struct stat){.st_ino = 0};
    if (!source->opened &&
        elf_file_open(&source->file, task->module, lines ? DWARF_CHEAP : DWARF_NONE))
        symbol_table_load(&source->table, &source->file);
    source->opened = true;
    if (patient && !source->thorough)
        elf_file_add_dwarf(&source->file);
    source->thorough = patient;
}

static void find_lines(void *arg) {
    struct task *const task = arg;
    struct symbol_source *const source = task->source;
    if (source->file.dwarf && !source->functions)
        source->functions = dwarf_functions_open(source->file.dwarf);
    if (source->functions)
        task->count = dwarf_lines(source->functions, task->address, task->lines, task->max);
}

/* Names that have been read already stay, and so does the file that they lie in. */
static void work_on(struct task *task, void (*work)(void *arg)) {
    struct symbol_source *const source = task->source;
    if (source->abandoned || task->symbolizer->guarded(work, task))
        return;
    source->abandoned = true;
    if (!source->opened) /* the table may be half made */
        source->table = (struct symbol_table){0};
    task->count = 0;
}

const char *symbolizer_htlhash(struct symbolizer *s, const struct harvest_module *module) {
    struct symbol_source *const source = source_of(s, module);
    if (!source)
        return NULL;
    if (!source->hashed && !file_hash(module, source->htlhash))
        source->htlhash[0] = 0;
    source->hashed = true;
    return source->htlhash[0] ? source->htlhash : NULL;
}

/* --- one address --- */

/* Copies what libdw or the table answered into our arena, with readable names. */
static void keep_line(struct symbolizer *s, struct symbol_line *line) {
    char *const readable = demangle(line->system_name);
    const char *const function = readable ? readable : line->system_name;
    line->function = arena_copy(&s->arena, function, strlen(function));
    line->system_name = arena_copy(&s->arena, line->system_name, strlen(line->system_name));
    line->file = arena_copy(&s->arena, line->file, strlen(line->file));
    free(readable);
}

static bool is_mangled(const char *name) {
    return strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0;
}

/* Debug information may have no name for the function that was compiled, one without its scope
 * (functions of an unnamed namespace, lambdas), or one that its file alone has for it (libc's
 * malloc is __GI___libc_malloc there): then the symbol tells more, and does so in exports from
 * before debug information is read, too. false: no name. */
static bool name_outermost(struct symbol_line *line, const struct symbol *symbol) {
    const char *const name = line->system_name;
    if (symbol &&
        (!name || (!is_mangled(name) && (is_mangled(symbol->name) || symbol_is_public(symbol)))))
        line->system_name = symbol->name;
    return line->system_name != NULL;
}

static size_t look_up(struct task *task) {
    work_on(task, open_file);
    work_on(task, find_lines);
    const struct symbol *const symbol = symbol_table_find(&task->source->table, task->address);
    if (task->count > 0 && name_outermost(&task->lines[task->count - 1], symbol))
        return task->count;
    if (!symbol)
        return 0;
    task->lines[0] = (struct symbol_line){.system_name = symbol->name, .file = ""};
    return 1;
}

static struct resolved *resolve(struct symbolizer *s, const struct harvest_module *module,
                                uint64_t address) {
    struct symbol_line lines[MAX_SYMBOL_LINES];
    struct symbol_source *const source = source_of(s, module);
    struct resolved *const result = arena_take(&s->arena, sizeof *result);
    if (!source || !result || s->mode == SYMBOLS_NONE)
        return result;
    struct task task = {.symbolizer = s,
                        .source = source,
                        .module = module,
                        .address = address - module->load_bias,
                        .lines = lines,
                        .max = MAX_SYMBOL_LINES};
    const size_t count = look_up(&task);
    result->lines = arena_take(&s->arena, (count + 1) * sizeof *lines);
    for (size_t i = 0; result->lines && i < count; i++) {
        keep_line(s, &lines[i]);
        result->lines[i] = lines[i];
    }
    result->count = result->lines && !s->arena.failed ? count : 0;
    return result;
}

size_t symbolizer_lines(struct symbolizer *s, const struct harvest_module *module, uint64_t address,
                        struct symbol_line *lines, size_t max) {
    bool is_new;
    const struct symbol_source *const source = source_of(s, module);
    const uint64_t key[] = {(uintptr_t)source, address - module->load_bias};
    const int32_t number = intern(&s->arena, &s->addresses, key, sizeof key, &is_new);
    if (number < 0)
        return 0;
    /* once a result could not be kept, numbers and results no longer agree: until the next trim
     * nothing new is named */
    if (is_new && ((size_t)number != s->results.count ||
                   !arena_list_add(&s->arena, &s->results, resolve(s, module, address))))
        return 0;
    const struct resolved *const result =
        (size_t)number < s->results.count ? s->results.items[number] : NULL;
    if (!result || result->count == 0)
        return 0;
    const size_t count = result->count < max ? result->count : max;
    memcpy(lines, result->lines, count * sizeof *lines);
    return count;
}
