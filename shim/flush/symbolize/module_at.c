#include "module_at.h"

#include <string.h>

/* Returns true if both entries describe one object, which was perhaps unloaded and loaded again at
 * its place. */
static bool same_object(const struct harvest_module *a, const struct harvest_module *b) {
    return a->load_bias == b->load_bias && a->text_start == b->text_start &&
           a->build_id_size == b->build_id_size &&
           (a->build_id_size == 0 || memcmp(a->build_id, b->build_id, a->build_id_size) == 0) &&
           strcmp(a->path, b->path) == 0;
}

static bool in_text(const struct harvest_module *module, uint64_t address) {
    return address >= module->text_start && address < module->text_end;
}

static bool in_object(const struct harvest_module *module, uint64_t address) {
    return address >= module->start && address < module->end;
}

static const struct harvest_module *the_one(const struct harvest_module *modules, size_t count,
                                            bool (*has)(const struct harvest_module *module,
                                                        uint64_t address),
                                            uint64_t address, uint64_t interval) {
    const struct harvest_module *found = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct harvest_module *const module = &modules[i];
        if (!has(module, address))
            continue;
        if (interval < module->first_interval || interval > module->last_interval)
            continue;
        if (found && !same_object(found, module))
            return NULL;
        if (!found || !module->unloaded)
            found = module;
    }
    return found;
}

const struct harvest_module *module_at(const struct harvest_module *modules, size_t count,
                                       uint64_t address, uint64_t interval) {
    return the_one(modules, count, in_text, address, interval);
}

const struct harvest_module *module_holding(const struct harvest_module *modules, size_t count,
                                            uint64_t address, uint64_t interval) {
    return the_one(modules, count, in_object, address, interval);
}
