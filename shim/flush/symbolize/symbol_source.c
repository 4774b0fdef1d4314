#include "symbol_source.h"

#include "hash.h"

#include <stdlib.h>
#include <string.h>

/* Bounds a small table, in bytes: an export's usual room for names suffices for it. Such a table
 * may have a million symbols. */
enum { MAX_SMALL_TABLE = 8 << 20 };

bool symbol_source_is_of(const struct symbol_source *source, const struct harvest_module *module) {
    return source->build_id_size == module->build_id_size &&
           (!module->build_id_size ||
            memcmp(source->build_id, module->build_id, module->build_id_size) == 0) &&
           strcmp(source->path, module->path) == 0;
}

struct symbol_source *symbol_source_new(const struct harvest_module *module) {
    struct symbol_source *const source = calloc(1, sizeof *source);
    char *const path = strdup(module->path);
    if (!source || !path || module->build_id_size > sizeof source->build_id) {
        free(source);
        free(path);
        return NULL;
    }
    elf_file_init(&source->file);
    source->path = path;
    source->build_id_size = module->build_id_size;
    if (module->build_id_size)
        memcpy(source->build_id, module->build_id, module->build_id_size);
    return source;
}

void symbol_source_forget_table(struct symbol_source *source) {
    symbol_table_free(&source->table);
    memset(source->states, 0, sizeof source->states);
}

void symbol_source_close_file(struct symbol_source *source) {
    dwarf_functions_close(source->functions);
    source->functions = NULL;
    elf_file_close(&source->file);
    source->opened = source->searched = source->dwarf_tried = source->deferred =
        source->table_deferred = false;
}

void symbol_source_close(struct symbol_source *source) {
    symbol_source_close_file(source);
    symbol_source_forget_table(source);
    free(source->path);
    free(source);
}

static struct file_state state_of(const struct elf_sections *sections) {
    const struct stat *const status = &sections->status;
    struct file_state state;
    /* clears the padding, too, because states are compared byte by byte */
    memset(&state, 0, sizeof state);
    state.device = status->st_dev;
    state.inode = status->st_ino;
    state.size = sections->size;
    state.modified = status->st_mtim;
    state.changed = status->st_ctim;
    return state;
}

void symbol_source_load_table(struct symbol_source *source, uint64_t room) {
    struct file_state states[ELF_PARTS];
    for (int i = 0; i < ELF_PARTS; i++)
        states[i] = state_of(&source->file.parts[i]);
    if (source->table.count && memcmp(states, source->states, sizeof states) == 0)
        return;
    symbol_source_forget_table(source);
    const uint64_t bytes = symbol_table_bytes(&source->file);
    source->table_deferred = bytes > MAX_SMALL_TABLE && bytes > room;
    if (source->table_deferred)
        return;
    symbol_table_load(&source->table, &source->file);
    memcpy(source->states, states, sizeof states);
}

/* --- costly names --- */

static uint64_t hash_of(const char *name) {
    uint64_t hash = 0;
    for (; *name; name++)
        hash = hash_word(hash, (unsigned char)*name);
    return hash;
}

bool symbol_source_is_costly(const struct symbol_source *source, const char *name) {
    const uint64_t hash = source->costly ? hash_of(name) : 0;
    for (unsigned i = 0; i < source->costly; i++)
        if (source->costly_names[i] == hash)
            return true;
    return source->costly == MAX_COSTLY_NAMES;
}

void symbol_source_note_costly(struct symbol_source *source, const char *name) {
    source->costly_names[source->costly++] = hash_of(name);
}
