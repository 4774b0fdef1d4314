#include "dictionary.h"

#include "glob.h"
#include "hash.h"
#include "redact.h"
#include "symbolize/generated_name.h"
#include "symbolize/interned_frame.h"
#include "symbolize/module_at.h"
#include "text_numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FRAMES = 1024, BUILD_ID_TEXT = 129 };

struct place {
    uint64_t address;
    uint64_t interval; /* interval as in harvest_sample */
};

/* Maps places to locations. The table is made for speed, because every frame of every sample is
 * searched here: a key has two words, a hash one multiplication. It uses open addressing, and is at
 * most half full. */
struct place_slot {
    struct place place;
    int32_t location; /* 0: empty */
};

enum { FIRST_PLACES = 2048 }; /* a power of two */

struct dictionary {
    struct otlp_writer *writer;
    struct symbolizer *symbolizer;
    const struct capture_api *api;
    const char *redact; /* globs */
    const struct harvest_module *modules;
    size_t module_count;
    /* mapping's index in the dictionary, by module; 0: the mapping is not yet written */
    int32_t *mappings;
    int32_t frame_type; /* index of the attribute of every native location; 0: not yet written */
    struct place_slot *places;
    size_t place_capacity;
    size_t place_count;
};

struct dictionary *dictionary_open(struct otlp_writer *writer, const struct capture_api *api,
                                   struct symbolizer *symbolizer) {
    struct dictionary *const d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->writer = writer;
    d->symbolizer = symbolizer;
    d->api = api;
    d->redact = api->config->redact;
    d->module_count = api->harvest.modules(&d->modules);
    d->mappings = calloc(d->module_count + 1, sizeof *d->mappings);
    d->places = calloc(FIRST_PLACES, sizeof *d->places);
    d->place_capacity = FIRST_PLACES;
    if (d->mappings && d->places)
        return d;
    dictionary_close(d);
    return NULL;
}

void dictionary_close(struct dictionary *d) {
    if (!d)
        return;
    free(d->places);
    free(d->mappings);
    free(d);
}

/* --- mappings --- */

static size_t mapping_attributes(struct dictionary *d, const struct harvest_module *module,
                                 int32_t attributes[static 4]) {
    char gnu[BUILD_ID_TEXT];
    size_t count = 0;
    const char *const htlhash = symbolizer_htlhash(d->symbolizer, module);
    const size_t most = BUILD_ID_TEXT / 2;
    (void)number_write_bytes(gnu, module->build_id,
                             module->build_id_size < most ? module->build_id_size : most);
    if (gnu[0])
        attributes[count++] =
            otlp_attribute_string(d->writer, "process.executable.build_id.gnu", gnu);
    if (htlhash)
        attributes[count++] =
            otlp_attribute_string(d->writer, "process.executable.build_id.htlhash", htlhash);
    return count;
}

static int32_t dictionary_mapping(struct dictionary *d, const struct harvest_module *module) {
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

static int32_t type_attribute(struct dictionary *d, const char *type) {
    return otlp_attribute_string(d->writer, "profile.frame.type", type);
}

static int32_t frame_type(struct dictionary *d) {
    if (!d->frame_type)
        d->frame_type = type_attribute(d, "native");
    return d->frame_type;
}

static int32_t named_location(struct dictionary *d, uint64_t address, const char *name) {
    const struct otlp_line line = {otlp_function(d->writer, name, "", "", 0), 0};
    return otlp_location(d->writer, 0, address, &line, 1, frame_type(d));
}

static int32_t dictionary_new_location(struct dictionary *d, struct place place) {
    const uint64_t address = place.address;
    struct symbol_line symbols[MAX_SYMBOL_LINES];
    struct otlp_line lines[MAX_SYMBOL_LINES];
    struct interned_frame interned;
    struct generated_name generated;
    if (interned_frame_find(d->api, address, &interned)) {
        lines[0] = line_of(d, interned.line);
        return otlp_location(d->writer, 0, 0, lines, 1, type_attribute(d, interned.type));
    }
    const struct harvest_module *const module =
        module_at(d->modules, d->module_count, address, place.interval);
    if (!module) {
        if (!symbolizer_generated(d->symbolizer, d->modules, d->module_count, address, &generated))
            return named_location(d, address, "[anonymous]");
        lines[0] = line_of(d, generated.line);
        return otlp_location(d->writer, 0, address, lines, 1, type_attribute(d, generated.type));
    }
    const size_t count =
        symbolizer_lines(d->symbolizer, module, address, symbols, MAX_SYMBOL_LINES);
    for (size_t i = 0; i < count; i++)
        lines[i] = line_of(d, symbols[i]);
    return otlp_location(d->writer, dictionary_mapping(d, module), address - module->load_bias,
                         lines, count, frame_type(d));
}

static struct place_slot *place_find_slot(struct place_slot *slots, size_t capacity,
                                          struct place place) {
    size_t at = hash_word(place.interval, place.address) & (capacity - 1);
    /* the loop ends, because half of the slots are empty */
    for (;; at = (at + 1) & (capacity - 1)) {
        struct place_slot *const slot = &slots[at];
        if (!slot->location ||
            (slot->place.address == place.address && slot->place.interval == place.interval))
            return slot;
    }
}

static bool grow_places(struct dictionary *d) {
    const size_t capacity = 2 * d->place_capacity;
    struct place_slot *const larger = calloc(capacity, sizeof *larger);
    if (!larger)
        return false;
    for (size_t i = 0; i < d->place_capacity; i++)
        if (d->places[i].location)
            *place_find_slot(larger, capacity, d->places[i].place) = d->places[i];
    free(d->places);
    d->places = larger;
    d->place_capacity = capacity;
    return true;
}

static int32_t dictionary_location(struct dictionary *d, struct place place) {
    struct place_slot *slot = place_find_slot(d->places, d->place_capacity, place);
    if (slot->location)
        return slot->location;
    if (2 * d->place_count >= d->place_capacity) {
        /* without memory the location is not cached; the writer lists it only once anyway */
        if (!grow_places(d))
            return dictionary_new_location(d, place);
        slot = place_find_slot(d->places, d->place_capacity, place);
    }
    const int32_t location = dictionary_new_location(d, place);
    if (!location) /* without memory there is no location; packing will report that */
        return 0;
    *slot = (struct place_slot){place, location};
    d->place_count++;
    return location;
}

/* --- stacks --- */

/* Detects a trampoline of CPython's (-X perf) whose function is already listed as the frame just
 * inside of it; both frames would seem to be a recursion. `frame` points to the trampoline's
 * address, after the inner frame. */
static bool is_python_trampoline(struct dictionary *d, const uint64_t *frame, uint64_t interval) {
    struct generated_name name;
    return !frame_is_address(frame[-1]) && frame_is_address(frame[0]) &&
           !module_at(d->modules, d->module_count, frame[0], interval) &&
           symbolizer_generated(d->symbolizer, d->modules, d->module_count, frame[0], &name) &&
           strcmp(name.type, "cpython") == 0;
}

int32_t dictionary_stack(struct dictionary *d, const uint64_t *frames, uint32_t count,
                         uint64_t interval) {
    int32_t locations[MAX_FRAMES];
    if (count == 0)
        return dictionary_named_stack(d, "[unknown]");
    if (count > MAX_FRAMES)
        count = MAX_FRAMES;
    uint32_t listed = 0;
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || !is_python_trampoline(d, &frames[i], interval))
            locations[listed++] = dictionary_location(d, (struct place){frames[i], interval});
    return otlp_stack(d->writer, locations, listed);
}

int32_t dictionary_named_stack(struct dictionary *d, const char *name) {
    const int32_t location = named_location(d, 0, name);
    return otlp_stack(d->writer, &location, 1);
}
