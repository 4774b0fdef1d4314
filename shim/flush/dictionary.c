#include "dictionary.h"

#include "arena.h"
#include "glob.h"
#include "intern.h"
#include "module_at.h"
#include "redact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FRAMES = 1024, BUILD_ID_TEXT = 129 };

struct place {
    uint64_t address;
    uint64_t interval; /* of harvest_sample */
};

struct dictionary {
    struct otlp_writer *writer;
    struct symbolizer *symbolizer;
    const char *redact; /* globs */
    const struct harvest_module *modules;
    size_t module_count;
    int32_t *mappings; /* by module; 0 = not yet */
    struct arena arena;
    struct intern places;
    struct arena_list locations; /* by number of the place */
};

struct dictionary *dictionary_open(struct otlp_writer *writer, const struct capture_api *api,
                                   struct symbolizer *symbolizer) {
    struct dictionary *const d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->writer = writer;
    d->symbolizer = symbolizer;
    d->redact = api->config->redact;
    d->module_count = api->modules(&d->modules);
    d->mappings = calloc(d->module_count + 1, sizeof *d->mappings);
    if (d->mappings)
        return d;
    free(d);
    return NULL;
}

void dictionary_close(struct dictionary *d) {
    if (!d)
        return;
    arena_free(&d->arena);
    free(d->mappings);
    free(d);
}

/* --- mappings --- */

static void build_id_text(const struct harvest_module *module, char text[static BUILD_ID_TEXT]) {
    text[0] = 0;
    for (uint32_t i = 0; i < module->build_id_size && i < BUILD_ID_TEXT / 2; i++)
        snprintf(text + 2 * i, 3, "%02x", module->build_id[i]);
}

static size_t mapping_attributes(struct dictionary *d, const struct harvest_module *module,
                                 int32_t attributes[static 4]) {
    char gnu[BUILD_ID_TEXT];
    size_t count = 0;
    const char *const htlhash = symbolizer_htlhash(d->symbolizer, module);
    build_id_text(module, gnu);
    if (gnu[0])
        attributes[count++] =
            otlp_attribute_string(d->writer, "process.executable.build_id.gnu", gnu);
    if (htlhash)
        attributes[count++] =
            otlp_attribute_string(d->writer, "process.executable.build_id.htlhash", htlhash);
    return count;
}

static int32_t mapping_of(struct dictionary *d, const struct harvest_module *module) {
    int32_t *const known = &d->mappings[module - d->modules];
    if (*known != 0)
        return *known;
    int32_t attributes[4];
    const size_t count = mapping_attributes(d, module, attributes);
    const struct otlp_mapping mapping = {.start = module->text_start - module->load_bias,
                                         .limit = module->text_end - module->load_bias,
                                         .file_offset = module->text_file_offset,
                                         .filename =
                                             glob_base_name(redact_path(d->redact, module->path)),
                                         .attributes = attributes,
                                         .attribute_count = count};
    *known = otlp_mapping(d->writer, &mapping);
    return *known;
}

/* --- locations --- */

static struct otlp_line line_of(struct dictionary *d, struct symbol_line line) {
    redact_line(d->redact, &line);
    return (struct otlp_line){
        otlp_function(d->writer, line.function, line.system_name, line.file, line.start_line),
        line.line};
}

static int32_t frame_type(struct dictionary *d) {
    return otlp_attribute_string(d->writer, "profile.frame.type", "native");
}

static int32_t named_location(struct dictionary *d, uint64_t address, const char *name) {
    const struct otlp_line line = {otlp_function(d->writer, name, "", "", 0), 0};
    return otlp_location(d->writer, 0, address, &line, 1, frame_type(d));
}

static int32_t new_location(struct dictionary *d, struct place place) {
    const uint64_t address = place.address;
    struct symbol_line symbols[MAX_SYMBOL_LINES];
    struct otlp_line lines[MAX_SYMBOL_LINES];
    const struct harvest_module *const module =
        module_at(d->modules, d->module_count, address, place.interval);
    if (!module)
        return named_location(d, address, "[anonymous]");
    const size_t count =
        symbolizer_lines(d->symbolizer, module, address, symbols, MAX_SYMBOL_LINES);
    for (size_t i = 0; i < count; i++)
        lines[i] = line_of(d, symbols[i]);
    return otlp_location(d->writer, mapping_of(d, module), address - module->load_bias, lines,
                         count, frame_type(d));
}

static int32_t location_of(struct dictionary *d, struct place place) {
    bool is_new;
    const int32_t number = intern(&d->arena, &d->places, &place, sizeof place, &is_new);
    if (number < 0)
        return 0;
    if (is_new) {
        const intptr_t location = new_location(d, place);
        if (!arena_list_add(&d->arena, &d->locations, (void *)location))
            return 0;
    }
    return (size_t)number < d->locations.count ? (int32_t)(intptr_t)d->locations.items[number] : 0;
}

/* --- stacks --- */

int32_t dictionary_stack(struct dictionary *d, const uint64_t *frames, uint32_t count,
                         uint64_t interval) {
    int32_t locations[MAX_FRAMES];
    if (count == 0)
        return dictionary_named_stack(d, "[unknown]");
    if (count > MAX_FRAMES)
        count = MAX_FRAMES;
    for (uint32_t i = 0; i < count; i++)
        locations[i] = location_of(d, (struct place){frames[i], interval});
    return otlp_stack(d->writer, locations, count);
}

int32_t dictionary_named_stack(struct dictionary *d, const char *name) {
    const int32_t location = named_location(d, 0, name);
    return otlp_stack(d->writer, &location, 1);
}
