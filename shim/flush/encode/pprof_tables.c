#include "pprof_tables.h"

#include "hash.h"

#include <stdlib.h>
#include <string.h>

typedef Opentelemetry__Proto__Profiles__V1development__Location otlp_location;
typedef Opentelemetry__Proto__Profiles__V1development__Mapping otlp_mapping;
typedef Opentelemetry__Proto__Profiles__V1development__Function otlp_function;
typedef Opentelemetry__Proto__Profiles__V1development__Stack otlp_stack;
typedef Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit otlp_attribute;

enum { MOST_LINES = 64, MOST_FRAMES = 1025 };
enum { NO_MAPPING = -1, FAILED = -2 };

/* Keys of the tables are compared byte by byte: they have no padding, or it is 0 (`nothing`). */
struct mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
    int32_t file;
    int32_t build_id;
};

struct function {
    int64_t start_line;
    int32_t name;
    int32_t system_name;
    int32_t file;
    int32_t nothing;
};

struct line {
    int64_t line;
    int32_t function;
    int32_t nothing;
};

/* A location is identified by its address and mapping if the file has a build id. Its names are not
 * part of the key then, because they improve over time: symbols are known at once, lines and
 * inlined functions only after debug information was read. */
struct location {
    uint64_t address;
    uint64_t names;  /* if address and mapping do not identify it: a hash of its lines */
    int32_t mapping; /* or NO_MAPPING */
    int32_t nothing;
};

/* Lines of a location, innermost first. As a key, only the first `count` are used. */
struct lines {
    struct line line[MOST_LINES];
    int32_t count;
};

/* Scrapers distinguish stacks by address alone, so a location without an address (functions of an
 * interpreter) gets one that is made from its names. Bit 48 is set and bits 49 to 62 are 0: no code
 * of x86-64 or aarch64 has such an address, because there these bits are all 0 or all 1. */
#define MADE_ADDRESS (UINT64_C(1) << 48)

/* Field numbers of pprof's messages: github.com/google/pprof, proto/profile.proto. */
enum { PROFILE_MAPPING = 3, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5, PROFILE_STRING = 6 };
enum { MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE, MAPPING_BUILD };
enum { MAPPING_FUNCTIONS = 7, MAPPING_FILES, MAPPING_LINES, MAPPING_INLINED };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE, FUNCTION_START };

/* --- reading a dictionary --- */

bool pprof_reading_open(struct pprof_reading *reading, const otlp_dictionary *dictionary) {
    *reading = (struct pprof_reading){
        .dictionary = dictionary,
        .locations = calloc(dictionary->n_location_table + 1, sizeof *reading->locations),
        .stacks = calloc(dictionary->n_stack_table + 1, sizeof *reading->stacks)};
    return reading->locations && reading->stacks;
}

void pprof_reading_close(struct pprof_reading *reading) {
    free(reading->locations);
    free(reading->stacks);
}

static bool is_index_in(int32_t index, size_t count) {
    return index >= 0 && (size_t)index < count;
}

const char *pprof_text(const struct pprof_reading *reading, int32_t string) {
    const otlp_dictionary *const dictionary = reading->dictionary;
    return is_index_in(string, dictionary->n_string_table) ? dictionary->string_table[string] : "";
}

int32_t pprof_number(struct pprof_tables *tables, struct intern *index, const void *key,
                     size_t size) {
    bool is_new;
    if (tables->frozen)
        return intern_find(index, key, size);
    return intern(&tables->arena, index, key, size, &is_new);
}

int32_t pprof_string(struct pprof_tables *tables, const char *text) {
    if (tables->strings.count == 0)
        (void)pprof_number(tables, &tables->strings, "", 0);
    return pprof_number(tables, &tables->strings, text, strlen(text));
}

static int32_t intern_string(struct pprof_tables *tables, const struct pprof_reading *reading,
                             int32_t string) {
    return pprof_string(tables, pprof_text(reading, string));
}

static const char *find_build_id(const struct pprof_reading *reading, const otlp_mapping *mapping) {
    const otlp_dictionary *const dictionary = reading->dictionary;
    for (size_t i = 0; i < mapping->n_attribute_indices; i++) {
        const int32_t index = mapping->attribute_indices[i];
        if (!is_index_in(index, dictionary->n_attribute_table))
            continue;
        const otlp_attribute *const attribute = dictionary->attribute_table[index];
        const char *const key = pprof_text(reading, attribute->key_strindex);
        if (strcmp(key, "process.executable.build_id.gnu") == 0 && attribute->value &&
            attribute->value->value_case ==
                OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE)
            return attribute->value->string_value;
    }
    return "";
}

/* Number 0 of the dictionary means no mapping. */
static int32_t intern_mapping(struct pprof_tables *tables, const struct pprof_reading *reading,
                              int32_t index) {
    if (index == 0 || !is_index_in(index, reading->dictionary->n_mapping_table))
        return NO_MAPPING;
    const otlp_mapping *const mapping = reading->dictionary->mapping_table[index];
    const struct mapping key = {.start = mapping->memory_start,
                                .limit = mapping->memory_limit,
                                .offset = mapping->file_offset,
                                .file = intern_string(tables, reading, mapping->filename_strindex),
                                .build_id = pprof_string(tables, find_build_id(reading, mapping))};
    if (key.file < 0 || key.build_id < 0)
        return FAILED;
    const int32_t number = pprof_number(tables, &tables->mappings, &key, sizeof key);
    return number < 0 ? FAILED : number;
}

static int32_t intern_function(struct pprof_tables *tables, const struct pprof_reading *reading,
                               int32_t index) {
    if (!is_index_in(index, reading->dictionary->n_function_table))
        return -1;
    const otlp_function *const function = reading->dictionary->function_table[index];
    const struct function key = {
        .name = intern_string(tables, reading, function->name_strindex),
        .system_name = intern_string(tables, reading, function->system_name_strindex),
        .file = intern_string(tables, reading, function->filename_strindex),
        .start_line = function->start_line};
    if (key.name < 0 || key.system_name < 0 || key.file < 0)
        return -1;
    return pprof_number(tables, &tables->functions, &key, sizeof key);
}

static uint64_t hash_text(uint64_t hash, const char *text) {
    while (*text)
        hash = hash_word(hash, (uint8_t)*text++);
    return hash_word(hash, 0);
}

static const char *string_text(const struct pprof_tables *tables, int32_t string) {
    return string < 0 ? "" : tables->strings.keys[string].bytes;
}

static const struct function *line_function(const struct pprof_tables *tables,
                                            const struct line *line) {
    return tables->functions.keys[line->function].bytes;
}

static uint64_t hash_lines(const struct pprof_tables *tables, const struct lines *lines) {
    uint64_t hash = 1;
    for (int32_t i = 0; i < lines->count; i++) {
        const struct function *const function = line_function(tables, &lines->line[i]);
        hash = hash_text(hash, string_text(tables, function->name));
        hash = hash_text(hash, string_text(tables, function->file));
        hash = hash_word(hash, (uint64_t)lines->line[i].line);
    }
    return hash;
}

static struct location make_location_key(const struct pprof_tables *tables, uint64_t address,
                                         int32_t mapping, const struct lines *lines) {
    const struct mapping *const file = mapping < 0 ? NULL : tables->mappings.keys[mapping].bytes;
    const bool has_build_id = file && file->build_id > 0;
    struct location key = {.address = address, .mapping = mapping};
    if (!address || !has_build_id)
        key.names = hash_lines(tables, lines);
    if (!address && lines->count)
        key.address = MADE_ADDRESS | (key.names & (MADE_ADDRESS - 1));
    return key;
}

static const struct line *lines_of(const struct pprof_tables *tables, int32_t location,
                                   int32_t *count) {
    const int32_t number = location < tables->lined ? tables->lines_of[location] : -1;
    const struct intern_key *const key = number < 0 ? NULL : &tables->lines.keys[number];
    *count = key ? (int32_t)(key->size / sizeof(struct line)) : 0;
    return key ? key->bytes : NULL;
}

/* Counts the known details: functions, files, lines. */
static int detail(const struct pprof_tables *tables, const struct line *lines, int32_t count) {
    int known_details = 0;
    for (int32_t i = 0; i < count; i++)
        known_details += 1 + (line_function(tables, &lines[i])->file > 0) + (lines[i].line > 0);
    return known_details;
}

/* Returns false without memory. */
static bool has_room_for_lines(struct pprof_tables *tables, int32_t location) {
    if (location < tables->lined)
        return true;
    const int32_t capacity = location < 128 ? 256 : 2 * location;
    int32_t *const larger = realloc(tables->lines_of, (size_t)capacity * sizeof *larger);
    if (!larger)
        return false;
    memset(larger + tables->lined, -1, (size_t)(capacity - tables->lined) * sizeof *larger);
    tables->lines_of = larger;
    tables->lined = capacity;
    return true;
}

/* Keeps the more detailed lines. */
static void keep_better_lines(struct pprof_tables *tables, int32_t location,
                              const struct lines *lines) {
    int32_t count;
    const struct line *const known = lines_of(tables, location, &count);
    if (detail(tables, lines->line, lines->count) <= detail(tables, known, count))
        return;
    const int32_t number = pprof_number(tables, &tables->lines, lines->line,
                                        (size_t)lines->count * sizeof *lines->line);
    if (number >= 0)
        tables->lines_of[location] = number;
}

static int32_t intern_location(struct pprof_tables *tables, const struct location *key,
                               const struct lines *lines) {
    const int32_t number = pprof_number(tables, &tables->locations, key, sizeof *key);
    if (number < 0 || !has_room_for_lines(tables, number))
        return -1;
    keep_better_lines(tables, number, lines);
    return number;
}

/* Returns false if a function cannot be stored. */
static bool read_lines(struct pprof_tables *tables, const struct pprof_reading *reading,
                       const otlp_location *of, struct lines *lines) {
    for (size_t i = 0; i < of->n_lines && i < MOST_LINES; i++) {
        const int32_t function = intern_function(tables, reading, of->lines[i]->function_index);
        if (function < 0)
            return false;
        lines->line[lines->count++] = (struct line){of->lines[i]->line, function, 0};
    }
    return true;
}

static int32_t read_location(struct pprof_tables *tables, const struct pprof_reading *reading,
                             const otlp_location *of) {
    struct lines lines = {.count = 0};
    const int32_t mapping = intern_mapping(tables, reading, of->mapping_index);
    if (mapping == FAILED)
        return -1;
    if (!read_lines(tables, reading, of, &lines)) {
        if (!tables->frozen)
            return -1;
        lines.count = 0; /* the table is full: a known location is found without lines */
    }
    const struct location key = make_location_key(tables, of->address, mapping, &lines);
    return intern_location(tables, &key, &lines);
}

static int32_t find_or_read_location(struct pprof_tables *tables, struct pprof_reading *reading,
                                     int32_t index) {
    if (!is_index_in(index, reading->dictionary->n_location_table))
        return -1;
    int32_t *const known = &reading->locations[index];
    if (!*known)
        *known = read_location(tables, reading, reading->dictionary->location_table[index]) + 1;
    return *known - 1;
}

static int32_t intern_stack(struct pprof_tables *tables, const int32_t *locations, size_t count) {
    return pprof_number(tables, &tables->stacks, locations, count * sizeof *locations);
}

int32_t pprof_stack(struct pprof_tables *tables, struct pprof_reading *reading, int32_t stack) {
    int32_t locations[MOST_FRAMES];
    if (!is_index_in(stack, reading->dictionary->n_stack_table))
        return -1;
    int32_t *const known = &reading->stacks[stack];
    if (*known)
        return *known - 1;
    const otlp_stack *const of = reading->dictionary->stack_table[stack];
    size_t count = 0;
    while (count < of->n_location_indices && count < MOST_FRAMES) {
        locations[count] = find_or_read_location(tables, reading, of->location_indices[count]);
        if (locations[count++] < 0)
            return -1;
    }
    *known = intern_stack(tables, locations, count) + 1;
    return *known - 1;
}

int32_t pprof_named_stack(struct pprof_tables *tables, const char *name) {
    const int32_t string = pprof_string(tables, name);
    const struct function function = {.name = string, .system_name = string};
    const int32_t number =
        string < 0 ? -1 : pprof_number(tables, &tables->functions, &function, sizeof function);
    const struct lines lines = {.line = {{.function = number}}, .count = 1};
    const struct location key = {.mapping = NO_MAPPING};
    const int32_t place = number < 0 ? -1 : intern_location(tables, &key, &lines);
    return place < 0 ? -1 : intern_stack(tables, &place, 1);
}

static size_t location_frames(const struct pprof_tables *tables, int32_t number,
                              struct pprof_frame *frames, size_t most) {
    const struct location *const location = tables->locations.keys[number].bytes;
    int32_t line_count;
    const struct line *const lines = lines_of(tables, number, &line_count);
    size_t count = 0;
    if (line_count == 0 && most > 0)
        frames[count++] =
            (struct pprof_frame){.function = "", .file = "", .address = location->address};
    for (int32_t i = 0; i < line_count && count < most; i++) {
        const struct function *const function = line_function(tables, &lines[i]);
        frames[count++] = (struct pprof_frame){.function = string_text(tables, function->name),
                                               .file = string_text(tables, function->file),
                                               .line = lines[i].line,
                                               .address = location->address,
                                               .is_inlined = i + 1 < line_count};
    }
    return count;
}

size_t pprof_stack_frames(const struct pprof_tables *tables, int32_t stack,
                          struct pprof_frame *frames, size_t most) {
    const struct intern_key *const key = &tables->stacks.keys[stack];
    const int32_t *const locations = key->bytes;
    size_t count = 0;
    for (size_t i = 0; i < key->size / sizeof *locations; i++)
        count += location_frames(tables, locations[i], frames + count, most - count);
    return count;
}

/* --- writing: an id is the number plus 1 --- */

void pprof_write_stack(const struct pprof_tables *tables, struct wire *wire, unsigned field,
                       int32_t stack) {
    const struct intern_key *const key = &tables->stacks.keys[stack];
    const int32_t *const locations = key->bytes;
    if (key->size == 0)
        return;
    const size_t begun = wire_begin(wire, field);
    for (size_t i = 0; i < key->size / sizeof *locations; i++)
        wire_varint(wire, (uint64_t)locations[i] + 1);
    wire_end(wire, begun);
}

/* Details that some location of a mapping lacks. pprof tools then read them from the mapping's
 * file; Pyroscope drops the addresses of a mapping whose functions are all named. */
struct unnamed {
    bool functions;
    bool files;
    bool lines;
    bool has_inlined;
};

static void note_names(const struct pprof_tables *tables, int32_t location,
                       struct unnamed *unnamed) {
    int32_t count;
    const struct line *const lines = lines_of(tables, location, &count);
    bool has_name = false, has_file = false, has_line = false;
    for (int32_t i = 0; i < count; i++) {
        const struct function *const function = line_function(tables, &lines[i]);
        has_name |= function->name > 0;
        has_file |= function->file > 0;
        has_line |= lines[i].line > 0;
    }
    unnamed->functions |= !has_name;
    unnamed->files |= !has_file;
    unnamed->lines |= !has_line;
    unnamed->has_inlined |= count > 1;
}

static void write_mapping(const struct mapping *mapping, uint64_t id, const struct unnamed *unnamed,
                          struct wire *wire) {
    const size_t begun = wire_begin(wire, PROFILE_MAPPING);
    wire_number(wire, MAPPING_ID, id);
    wire_number(wire, MAPPING_START, mapping->start);
    wire_number(wire, MAPPING_LIMIT, mapping->limit);
    wire_number(wire, MAPPING_OFFSET, mapping->offset);
    wire_number(wire, MAPPING_FILE, (uint64_t)mapping->file);
    wire_number(wire, MAPPING_BUILD, (uint64_t)mapping->build_id);
    wire_number(wire, MAPPING_FUNCTIONS, !unnamed->functions);
    wire_number(wire, MAPPING_FILES, !unnamed->files);
    wire_number(wire, MAPPING_LINES, !unnamed->lines);
    wire_number(wire, MAPPING_INLINED, unnamed->has_inlined);
    wire_end(wire, begun);
}

static void write_mappings(const struct pprof_tables *tables, struct wire *wire) {
    struct unnamed *const unnamed = calloc((size_t)tables->mappings.count + 1, sizeof *unnamed);
    wire->failed |= !unnamed;
    if (!unnamed)
        return;
    for (int32_t i = 0; i < tables->locations.count; i++) {
        const struct location *const location = tables->locations.keys[i].bytes;
        if (location->mapping >= 0)
            note_names(tables, i, &unnamed[location->mapping]);
    }
    for (int32_t i = 0; i < tables->mappings.count; i++)
        write_mapping(tables->mappings.keys[i].bytes, (uint64_t)i + 1, &unnamed[i], wire);
    free(unnamed);
}

static void write_location(const struct pprof_tables *tables, int32_t number, struct wire *wire) {
    const struct location *const location = tables->locations.keys[number].bytes;
    int32_t count;
    const struct line *const lines = lines_of(tables, number, &count);
    const size_t begun = wire_begin(wire, PROFILE_LOCATION);
    wire_number(wire, LOCATION_ID, (uint64_t)number + 1);
    wire_number(wire, LOCATION_MAPPING, (uint64_t)((int64_t)location->mapping + 1));
    wire_number(wire, LOCATION_ADDRESS, location->address);
    for (int32_t i = 0; i < count; i++) {
        const size_t line = wire_begin(wire, LOCATION_LINE);
        wire_number(wire, LINE_FUNCTION, (uint64_t)lines[i].function + 1);
        wire_number(wire, LINE_LINE, (uint64_t)lines[i].line);
        wire_end(wire, line);
    }
    wire_end(wire, begun);
}

static void write_function(const struct function *function, uint64_t id, struct wire *wire) {
    const size_t begun = wire_begin(wire, PROFILE_FUNCTION);
    wire_number(wire, FUNCTION_ID, id);
    wire_number(wire, FUNCTION_NAME, (uint64_t)function->name);
    wire_number(wire, FUNCTION_SYSTEM_NAME, (uint64_t)function->system_name);
    wire_number(wire, FUNCTION_FILE, (uint64_t)function->file);
    wire_number(wire, FUNCTION_START, (uint64_t)function->start_line);
    wire_end(wire, begun);
}

void pprof_write_tables(const struct pprof_tables *tables, struct wire *wire) {
    write_mappings(tables, wire);
    for (int32_t i = 0; i < tables->locations.count; i++)
        write_location(tables, i, wire);
    for (int32_t i = 0; i < tables->functions.count; i++)
        write_function(tables->functions.keys[i].bytes, (uint64_t)i + 1, wire);
    for (int32_t i = 0; i < tables->strings.count; i++)
        wire_bytes(wire, PROFILE_STRING, tables->strings.keys[i].bytes,
                   tables->strings.keys[i].size);
}

void pprof_tables_free(struct pprof_tables *tables) {
    arena_free(&tables->arena);
    free(tables->lines_of);
    *tables = (struct pprof_tables){.strings = {.count = 0}};
}
