#include "unloaded_modules.h"

#include "kernel/profiler_memory.h"

#include <string.h>

/* searches so many of the newest unloaded objects for one that was loaded again */
enum { SEARCHED_OBJECTS = 64 };

/* --- remembering --- */

static void unloaded_modules_fill(struct unloaded_memory *memory, size_t slot,
                                  const struct harvest_module *gone) {
    struct harvest_module *const module = &memory->modules[slot];
    *module = *gone;
    module->unloaded = true;
    module->path = memcpy(memory->texts[slot].path, gone->path, strlen(gone->path) + 1);
    if (gone->build_id)
        module->build_id =
            memcpy(memory->texts[slot].build_id, gone->build_id, gone->build_id_size);
}

/* Finds the same object, if it was loaded until just before, and no other object came in
 * between. */
static struct harvest_module *find_continued(const struct unloaded_modules *unloaded,
                                             const struct harvest_module *gone) {
    for (uint64_t i = 0; i < SEARCHED_OBJECTS && i < unloaded->added; i++) {
        struct harvest_module *const before =
            unloaded_modules_at(unloaded, (unloaded->added - 1 - i) % UNLOADED_MODULES);
        if (before->last_interval + 1 >= gone->first_interval && module_is_same(before, gone))
            return before;
    }
    return NULL;
}

bool unloaded_modules_add(struct unloaded_modules *unloaded, const struct harvest_module *gone,
                          struct harvest_module *forgotten) {
    struct harvest_module *const before = find_continued(unloaded, gone);
    if (before) {
        before->last_interval = gone->last_interval;
        return false;
    }
    if (!unloaded->memory)
        unloaded->memory = profiler_memory_take(whole_pages(sizeof *unloaded->memory));
    if (!unloaded->memory) {
        *forgotten = *gone;
        return true;
    }
    const size_t slot = unloaded->added % UNLOADED_MODULES;
    const bool full = unloaded->added++ >= UNLOADED_MODULES;
    if (full)
        *forgotten = unloaded->memory->modules[slot];
    unloaded_modules_fill(unloaded->memory, slot, gone);
    return full;
}

/* --- handing over --- */

static size_t text_bytes(const struct unloaded_modules *unloaded) {
    size_t bytes = 0;
    for (size_t i = 0; i < unloaded_modules_count(unloaded); i++) {
        const struct harvest_module *const module = unloaded_modules_at(unloaded, i);
        bytes += strlen(module->path) + 1 + module->build_id_size;
    }
    return bytes;
}

/* Returns the end of the text that it has written to `text`. */
static char *unloaded_module_copy(struct harvest_module *to, const struct harvest_module *from,
                                  char *text) {
    const size_t path_bytes = strlen(from->path) + 1;
    *to = *from;
    to->path = memcpy(text, from->path, path_bytes);
    text += path_bytes;
    if (from->build_id)
        to->build_id = memcpy(text, from->build_id, from->build_id_size);
    return text + (from->build_id ? from->build_id_size : 0);
}

struct module_snapshot *unloaded_modules_join(const struct unloaded_modules *unloaded,
                                              const struct module_snapshot *loaded) {
    const size_t gone = unloaded_modules_count(unloaded);
    const size_t count = loaded->count + gone;
    const size_t bytes =
        whole_pages(sizeof *loaded + count * sizeof *loaded->modules + text_bytes(unloaded));
    struct module_snapshot *const joined = profiler_memory_take(bytes);
    if (!joined)
        return NULL;
    joined->mapping_size = bytes;
    joined->count = count;
    memcpy(joined->modules, loaded->modules, loaded->count * sizeof *loaded->modules);
    char *text = (char *)&joined->modules[count];
    for (size_t i = 0; i < gone; i++)
        text = unloaded_module_copy(&joined->modules[loaded->count + i],
                                    unloaded_modules_at(unloaded, i), text);
    return joined;
}
