#include "pprof_tables.h"

#include "hash.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 64, MOST_FRAMES = 1025 };
enum { NO_MAPPING = -1 };

/* Describes a mapping. Keys of the tables are compared byte by byte, so they have no padding, or
 * zeros in its place (`nothing`). */
struct mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
    int32_t file;
    int32_t build_id;
};

/* Describes a location, which is identified by its address and mapping if the file has a build id.
 * Its names are not part of the key then, because they improve over time: symbols are known at
 * once, lines and inlined functions only after debug information was read. */
struct location {
    uint64_t address;
    /* hash of the lines, if address and mapping do not identify the location; else 0 */
    uint64_t names;
    int32_t mapping; /* number of the mapping, or NO_MAPPING */
    int32_t nothing;
};

/* Holds the lines of a location, innermost first. Only the first `count` are stored. */
struct lines {
    int32_t count;
    struct otlp_line line[MOST_LINES];
};

/* Marks a made address. Scrapers distinguish stacks by address alone, so a location without an
 * address (functions of an interpreter) gets an address that is made from its names. Bit 48 is set
 * and bits 49 to 62 are 0: no code of x86-64 or aarch64 has such an address, because there these
 * bits are all 0 or all 1. */
#define MADE_ADDRESS (UINT64_C(1) << 48)

/* Lists field numbers of pprof's messages: github.com/google/pprof, proto/profile.proto. */
enum { PROFILE_MAPPING = 3, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5, PROFILE_STRING = 6 };
enum { MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE, MAPPING_BUILD };
enum { MAPPING_FUNCTIONS = 7, MAPPING_FILES, MAPPING_LINES, MAPPING_INLINED };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE, FUNCTION_START };

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

/* --- reading an export's tables --- */

bool pprof_reading_open(struct pprof_reading *reading, const struct otlp_writer *writer) {
    const struct intern *const tables[] = {[READ_FUNCTIONS] = &writer->functions,
                                           [READ_MAPPINGS] = &writer->mappings,
                                           [READ_LOCATIONS] = &writer->locations,
                                           [READ_STACKS] = &writer->stacks};
    size_t all = 0;
    for (size_t i = 0; i < READ_TABLES; i++)
        all += (size_t)tables[i]->count;
    int32_t *numbers = calloc(all, sizeof *numbers);
    *reading = (struct pprof_reading){.writer = writer};
    for (size_t i = 0; numbers && i < READ_TABLES; numbers += tables[i++]->count)
        reading->numbers[i] = numbers;
    return reading->numbers[0];
}

void pprof_reading_close(struct pprof_reading *reading) {
    free(reading->numbers[0]);
}

typedef int32_t read_item(struct pprof_tables *tables, struct pprof_reading *reading,
                          int32_t index);

/* Reads an item unless it was read before. Returns its number in these tables; -1 if `read` returns
 * -1. */
static int32_t read_once(struct pprof_tables *tables, struct pprof_reading *reading,
                         enum read_table table, int32_t index, read_item *read) {
    int32_t *const known = &reading->numbers[table][index];
    if (!*known)
        *known = read(tables, reading, index) + 1;
    return *known - 1;
}

static const char *find_build_id(const struct otlp_writer *writer,
                                 const struct intern_key *mapping) {
    const struct listed_mapping *const listed = mapping->bytes;
    const size_t count = (mapping->size - LISTED_MAPPING_BYTES) / sizeof *listed->attributes;
    for (size_t i = 0; i < count; i++) {
        const struct listed_attribute *const attribute =
            writer->attributes.keys[listed->attributes[i]].bytes;
        if (attribute->form == ANY_STRING &&
            strcmp(listed_text(writer, attribute->key), "process.executable.build_id.gnu") == 0)
            return attribute->text;
    }
    return "";
}

static int32_t read_mapping(struct pprof_tables *tables, struct pprof_reading *reading,
                            int32_t index) {
    const struct otlp_writer *const writer = reading->writer;
    const struct listed_mapping *const listed = writer->mappings.keys[index].bytes;
    struct mapping key = {
        .start = listed->start, .limit = listed->limit, .offset = listed->file_offset};
    key.file = pprof_string(tables, listed_text(writer, listed->filename));
    key.build_id = pprof_string(tables, find_build_id(writer, &writer->mappings.keys[index]));
    if (key.file < 0 || key.build_id < 0)
        return -1;
    return pprof_number(tables, &tables->mappings, &key, sizeof key);
}

static int32_t read_function(struct pprof_tables *tables, struct pprof_reading *reading,
                             int32_t index) {
    const struct otlp_writer *const writer = reading->writer;
    struct listed_function key;
    memcpy(&key, writer->functions.keys[index].bytes, sizeof key);
    key.name = pprof_string(tables, listed_text(writer, key.name));
    key.system_name = pprof_string(tables, listed_text(writer, key.system_name));
    key.file = pprof_string(tables, listed_text(writer, key.file));
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

static const struct listed_function *line_function(const struct pprof_tables *tables,
                                                   const struct otlp_line *line) {
    return tables->functions.keys[line->function].bytes;
}

static uint64_t hash_lines(const struct pprof_tables *tables, const struct lines *lines) {
    uint64_t hash = 1;
    for (int32_t i = 0; i < lines->count; i++) {
        const struct listed_function *const function = line_function(tables, &lines->line[i]);
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

static const struct lines *lines_of(const struct pprof_tables *tables, int32_t location) {
    static const struct lines none;
    const struct lines *const lines = tables->lines.items[location];
    return lines ? lines : &none;
}

/* Returns the number of known details: functions, files, lines. */
static int detail(const struct pprof_tables *tables, const struct lines *lines) {
    int known_details = 0;
    for (int32_t i = 0; i < lines->count; i++)
        known_details +=
            1 + (line_function(tables, &lines->line[i])->file > 0) + (lines->line[i].line > 0);
    return known_details;
}

/* Finds or adds a location, and keeps the more detailed of two lists of lines. Returns the
 * location's number; -1 as pprof_number(). */
static int32_t intern_location(struct pprof_tables *tables, const struct location *key,
                               const struct lines *lines) {
    const int32_t number = pprof_number(tables, &tables->locations, key, sizeof *key);
    if (number < 0)
        return -1;
    while (tables->lines.count <= (size_t)number)
        if (!arena_list_add(&tables->arena, &tables->lines, NULL))
            return -1;
    if (detail(tables, lines) > detail(tables, lines_of(tables, number))) {
        const size_t size =
            offsetof(struct lines, line) + (size_t)lines->count * sizeof *lines->line;
        tables->lines.items[number] = arena_copy(&tables->arena, lines, size);
    }
    return number;
}

/* Reads the lines of a location. Returns false if a function cannot be stored. */
static bool read_lines(struct pprof_tables *tables, struct pprof_reading *reading,
                       const struct intern_key *of, struct lines *lines) {
    const struct listed_location *const listed = of->bytes;
    const size_t count = (of->size - sizeof *listed) / sizeof *listed->lines;
    for (size_t i = 0; i < count && i < MOST_LINES; i++) {
        const int32_t function =
            read_once(tables, reading, READ_FUNCTIONS, listed->lines[i].function, read_function);
        if (function < 0)
            return false;
        lines->line[lines->count++] = (struct otlp_line){function, listed->lines[i].line};
    }
    return true;
}

static int32_t read_location(struct pprof_tables *tables, struct pprof_reading *reading,
                             int32_t index) {
    struct lines lines = {.count = 0};
    const struct intern_key *const of = &reading->writer->locations.keys[index];
    const struct listed_location *const listed = of->bytes;
    /* number 0 of the export means no mapping */
    const int32_t mapping =
        listed->mapping ? read_once(tables, reading, READ_MAPPINGS, listed->mapping, read_mapping)
                        : NO_MAPPING;
    if (listed->mapping && mapping < 0)
        return -1;
    if (!read_lines(tables, reading, of, &lines)) {
        if (!tables->frozen)
            return -1;
        /* once the table is full, a new location is not stored, but a known location is still
         * found */
        lines.count = 0;
    }
    const struct location key = make_location_key(tables, listed->address, mapping, &lines);
    return intern_location(tables, &key, &lines);
}

static int32_t intern_stack(struct pprof_tables *tables, const int32_t *locations, size_t count) {
    return pprof_number(tables, &tables->stacks, locations, count * sizeof *locations);
}

static int32_t read_stack(struct pprof_tables *tables, struct pprof_reading *reading,
                          int32_t index) {
    int32_t locations[MOST_FRAMES];
    const struct intern_key *const of = &reading->writer->stacks.keys[index];
    const int32_t *const listed = of->bytes;
    size_t count = 0;
    while (count < of->size / sizeof *listed && count < MOST_FRAMES) {
        locations[count] = read_once(tables, reading, READ_LOCATIONS, listed[count], read_location);
        if (locations[count++] < 0)
            return -1;
    }
    return intern_stack(tables, locations, count);
}

int32_t pprof_read_stack(struct pprof_tables *tables, struct pprof_reading *reading,
                         int32_t index) {
    return read_once(tables, reading, READ_STACKS, index, read_stack);
}

int32_t pprof_named_stack(struct pprof_tables *tables, const char *name) {
    const int32_t string = pprof_string(tables, name);
    const struct listed_function function = {.name = string, .system_name = string};
    const int32_t number =
        string < 0 ? -1 : pprof_number(tables, &tables->functions, &function, sizeof function);
    const struct lines lines = {.count = 1, .line = {{.function = number}}};
    const struct location key = {.mapping = NO_MAPPING};
    const int32_t place = number < 0 ? -1 : intern_location(tables, &key, &lines);
    return place < 0 ? -1 : intern_stack(tables, &place, 1);
}

static size_t location_frames(const struct pprof_tables *tables, int32_t number,
                              struct pprof_frame *frames, size_t most) {
    const struct location *const location = tables->locations.keys[number].bytes;
    const struct lines *const lines = lines_of(tables, number);
    size_t count = 0;
    if (lines->count == 0 && most > 0)
        frames[count++] =
            (struct pprof_frame){.function = "", .file = "", .address = location->address};
    for (int32_t i = 0; i < lines->count && count < most; i++) {
        const struct listed_function *const function = line_function(tables, &lines->line[i]);
        frames[count++] = (struct pprof_frame){.function = string_text(tables, function->name),
                                               .file = string_text(tables, function->file),
                                               .line = lines->line[i].line,
                                               .address = location->address,
                                               .is_inlined = i + 1 < lines->count};
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

/* --- writing: an item's id is its number plus 1 --- */

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

/* Notes which details some location of a mapping lacks. pprof tools then read them from the
 * mapping's file; Pyroscope drops the addresses of a mapping whose functions are all named. */
struct unnamed {
    bool functions;
    bool files;
    bool lines;
    bool has_inlined;
};

static void note_names(const struct pprof_tables *tables, const struct lines *lines,
                       struct unnamed *unnamed) {
    bool has_name = false, has_file = false, has_line = false;
    for (int32_t i = 0; i < lines->count; i++) {
        const struct listed_function *const function = line_function(tables, &lines->line[i]);
        has_name |= function->name > 0;
        has_file |= function->file > 0;
        has_line |= lines->line[i].line > 0;
    }
    unnamed->functions |= !has_name;
    unnamed->files |= !has_file;
    unnamed->lines |= !has_line;
    unnamed->has_inlined |= lines->count > 1;
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
            note_names(tables, lines_of(tables, i), &unnamed[location->mapping]);
    }
    for (int32_t i = 0; i < tables->mappings.count; i++)
        write_mapping(tables->mappings.keys[i].bytes, (uint64_t)i + 1, &unnamed[i], wire);
    free(unnamed);
}

static void write_location(const struct pprof_tables *tables, int32_t number, struct wire *wire) {
    const struct location *const location = tables->locations.keys[number].bytes;
    const struct lines *const lines = lines_of(tables, number);
    const size_t begun = wire_begin(wire, PROFILE_LOCATION);
    wire_number(wire, LOCATION_ID, (uint64_t)number + 1);
    wire_number(wire, LOCATION_MAPPING, (uint64_t)((int64_t)location->mapping + 1));
    wire_number(wire, LOCATION_ADDRESS, location->address);
    for (int32_t i = 0; i < lines->count; i++) {
        const size_t line = wire_begin(wire, LOCATION_LINE);
        wire_number(wire, LINE_FUNCTION, (uint64_t)lines->line[i].function + 1);
        wire_number(wire, LINE_LINE, (uint64_t)lines->line[i].line);
        wire_end(wire, line);
    }
    wire_end(wire, begun);
}

static void write_function(const struct listed_function *function, uint64_t id, struct wire *wire) {
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
    *tables = (struct pprof_tables){.strings = {.count = 0}};
}
