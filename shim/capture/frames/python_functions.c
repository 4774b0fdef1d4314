#include "python_functions.h"

#include "hash.h"
#include "kernel/profiler_memory.h"
#include "python_lines.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

enum {
    SEEN = 1 << 13,    /* number of code objects that the table `seen` remembers */
    BUCKETS = 1 << 14, /* buckets of functions by their contents */
    /* low bits of a word of `seen`: the place of a record; the high bits distinguish code
     * objects */
    PLACE_BITS = 24,
    UNIT = 8, /* bytes in which places are counted */
    CHARACTER_BYTES = 4,
};
_Static_assert(PYTHON_FUNCTIONS_BYTES / UNIT < 1 << PLACE_BITS, "a place fits");
_Static_assert((int)PYTHON_LINES_BYTES <= (int)PYTHON_VIEW_BYTES, "each part can be viewed");

enum { NAME, FILE_PATH, LINES, PARTS };

/* Describes a string, or an object of bytes, that a code object refers to. */
struct part {
    uint32_t bytes;
    uint32_t character; /* bytes of a character; 0: no string, or one of an unknown type */
};

/* Holds a record: the name, file and lines of one function. It is written once, before it is
 * published. */
struct function {
    uint64_t hash;
    uint32_t next; /* place of the next in the bucket; 0: none */
    int32_t first_line;
    struct part parts[PARTS];
    uint8_t bytes[]; /* contents of all parts, one after another */
};

struct python_functions {
    _Atomic uint32_t used; /* units of records */
    _Atomic uint32_t buckets[BUCKETS];
    _Atomic uint64_t seen[SEEN];
    /* used by the helper */
    char name[PYTHON_NAME_CHARACTERS * CHARACTER_BYTES + 1];
    char file[PYTHON_FILE_CHARACTERS * CHARACTER_BYTES + 1];
    _Alignas(UNIT) uint8_t records[];
};

/* Describes a code object, as the interpreter's memory has it now. */
struct found {
    struct python_functions *functions;
    const struct python_offsets *offsets;
    struct python_reader *reader;
    int32_t first_line;
    uintptr_t objects[PARTS]; /* the objects that the code object refers to */
    uintptr_t at[PARTS];      /* addresses of the bytes of each object that are kept */
    struct part parts[PARTS];
};

enum {
    FIRST_PLACE = offsetof(struct python_functions, records) / UNIT,
    CAPACITY = PYTHON_FUNCTIONS_BYTES / UNIT - FIRST_PLACE,
};

static struct function *python_functions_function_at(struct python_functions *functions,
                                                     uint32_t place) {
    return (struct function *)((uint64_t *)functions + place);
}

struct python_functions *python_functions_new(void) {
    return profiler_memory_map(PYTHON_FUNCTIONS_BYTES);
}

void python_functions_after_fork(struct python_functions *functions) {
    profiler_memory_reset_in_child(functions, PYTHON_FUNCTIONS_BYTES);
}

/* --- contents of a code object --- */

/* Returns a copy of the bytes, valid until the next view. If `size` is 0, any address. */
static inline const uint8_t *view(const struct found *found, uintptr_t address, size_t size) {
    return size == 0 ? (const uint8_t *)found : python_view(found->reader, address, size);
}

static uint64_t object_word(const uint8_t *object, uint32_t offset) {
    uint64_t word;
    memcpy(&word, object + offset, sizeof word);
    return word;
}

static uint32_t half_of(const uint8_t *object, uint32_t offset) {
    uint32_t half;
    memcpy(&half, object + offset, sizeof half);
    return half;
}

/* Describes a string of so many characters by its `state`; an empty part: its type is unexpected.
 * Source: PyASCIIObject.state, from the lowest bit on: interned (2 bits), kind (3: the bytes of a
 * character), compact, ascii. Some builds of 3.14 use 16 bits for `interned`. */
static struct part part_of_string(uint32_t state, uint32_t characters, bool *is_ascii) {
    enum { KIND_SHIFT = 2, KIND_MASK = 7, WIDER_BY = 14, COMPACT = 1 << 5, ASCII = 1 << 6 };
    const uint32_t bits = state >> KIND_SHIFT & KIND_MASK ? state : state >> WIDER_BY;
    const uint32_t kind = bits >> KIND_SHIFT & KIND_MASK;
    *is_ascii = bits & ASCII;
    if (!(bits & COMPACT) || (kind != 1 && kind != 2 && kind != 4))
        return (struct part){0, 0};
    return (struct part){characters * kind, kind};
}

/* Finds the characters of string `i`: at most `most` of them, the last ones if `keeps_end`. Treats
 * a string of an unexpected type (a subclass, which no compiler emits) as empty. Returns false if
 * the string cannot be read, or its length is negative. */
static bool find_string(struct found *found, int i, uint32_t most, bool keeps_end) {
    const struct python_offsets *const o = found->offsets;
    const uint8_t *const head = view(found, found->objects[i], o->string_ascii);
    bool is_ascii;
    if (!head)
        return false;
    const uint64_t length = object_word(head, o->string_length);
    const uint32_t kept = length < most ? (uint32_t)length : most;
    const struct part part = part_of_string(half_of(head, o->string_state), kept, &is_ascii);
    const uintptr_t first = found->objects[i] + (is_ascii ? o->string_ascii : o->string_wide);
    found->parts[i] = part;
    found->at[i] = first + (keeps_end ? (length - kept) * part.character : 0);
    return (int64_t)length >= 0;
}

static bool python_functions_find_lines(struct found *found) {
    const struct python_offsets *const o = found->offsets;
    const uint8_t *const head = view(found, found->objects[LINES], o->bytes_data);
    if (!head)
        return false;
    const uint64_t size = object_word(head, o->var_size);
    const uint64_t most = PYTHON_LINES_BYTES;
    found->parts[LINES] = (struct part){(uint32_t)(size < most ? size : most), 0};
    found->at[LINES] = found->objects[LINES] + o->bytes_data;
    return (int64_t)size >= 0;
}

static bool find_parts(struct found *found) {
    return find_string(found, NAME, PYTHON_NAME_CHARACTERS, false) &&
           find_string(found, FILE_PATH, PYTHON_FILE_CHARACTERS, true) &&
           python_functions_find_lines(found);
}

/* Reads the addresses of the objects that the code object refers to. */
static bool find_objects(struct found *found, uintptr_t code) {
    const struct python_offsets *const o = found->offsets;
    const uint8_t *const head = view(found, code, o->code_units);
    if (!head)
        return false;
    found->objects[NAME] = object_word(head, o->code_qualname);
    found->objects[FILE_PATH] = object_word(head, o->code_filename);
    found->objects[LINES] = object_word(head, o->code_linetable);
    found->first_line = (int32_t)half_of(head, o->code_first_line);
    return ((found->objects[NAME] | found->objects[FILE_PATH] | found->objects[LINES]) & 7) == 0;
}

/* --- contents --- */

static uint64_t hash_part(uint64_t hash, struct part part, const uint8_t *bytes) {
    uint64_t word = 0;
    uint32_t done = 0;
    hash = hash_word(hash, (uint64_t)part.bytes << 8 | part.character);
    for (; done + sizeof word <= part.bytes; done += sizeof word) {
        memcpy(&word, bytes + done, sizeof word);
        hash = hash_word(hash, word);
    }
    word = 0;
    memcpy(&word, bytes + done, part.bytes - done);
    return hash_word(hash, word);
}

/* Hashes the parts. Returns false if the memory can no longer be read. */
static bool hash_found(const struct found *found, uint64_t *hash) {
    *hash = hash_word(0, (uint32_t)found->first_line);
    for (int i = 0; i < PARTS; i++) {
        const uint8_t *const bytes = view(found, found->at[i], found->parts[i].bytes);
        if (!bytes)
            return false;
        *hash = hash_part(*hash, found->parts[i], bytes);
    }
    return true;
}

static uint64_t hash_function(const struct function *function) {
    uint64_t hash = hash_word(0, (uint32_t)function->first_line);
    const uint8_t *bytes = function->bytes;
    for (int i = 0; i < PARTS; i++) {
        hash = hash_part(hash, function->parts[i], bytes);
        bytes += function->parts[i].bytes;
    }
    return hash;
}

static bool python_function_matches(const struct found *found, const struct function *function) {
    const uint8_t *bytes = function->bytes;
    if (found->first_line != function->first_line ||
        memcmp(found->parts, function->parts, sizeof found->parts) != 0)
        return false;
    for (int i = 0; i < PARTS; i++) {
        const uint32_t size = found->parts[i].bytes;
        const uint8_t *const there = view(found, found->at[i], size);
        if (!there || memcmp(there, bytes, size) != 0)
            return false;
        bytes += size;
    }
    return true;
}

/* --- records --- */

static uint32_t units_of(const struct part parts[PARTS]) {
    const uint32_t bytes = parts[NAME].bytes + parts[FILE_PATH].bytes + parts[LINES].bytes;
    return (uint32_t)(sizeof(struct function) + bytes + UNIT - 1) / UNIT;
}

static uint32_t python_functions_reserve(struct python_functions *functions, uint32_t units) {
    uint32_t used = atomic_load_explicit(&functions->used, memory_order_relaxed);
    do {
        if (units > CAPACITY - used)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&functions->used, &used, used + units,
                                                    memory_order_relaxed, memory_order_relaxed));
    return FIRST_PLACE + used;
}

/* Fills in a record. Returns false if the contents have changed since they were hashed. */
static bool python_functions_fill(const struct found *found, struct function *function,
                                  uint64_t hash) {
    uint8_t *bytes = function->bytes;
    memcpy(function->parts, found->parts, sizeof function->parts);
    function->first_line = found->first_line;
    for (int i = 0; i < PARTS; i++) {
        const uint32_t size = found->parts[i].bytes;
        const uint8_t *const there = view(found, found->at[i], size);
        if (!there)
            return false;
        memcpy(bytes, there, size);
        bytes += size;
    }
    function->hash = hash;
    return hash_function(function) == hash;
}

/* Searches the records from `place` up to, but without, `end`. Returns 0 if none has these
 * contents. */
static uint32_t find_same(const struct found *found, uint32_t place, uint32_t end, uint64_t hash) {
    while (place != end) {
        const struct function *const function =
            python_functions_function_at(found->functions, place);
        if (function->hash == hash && python_function_matches(found, function))
            return place;
        place = function->next;
    }
    return 0;
}

/* Publishes a new record in front of `newest`. If another thread has published the same function
 * since, returns that record instead. */
static uint32_t python_functions_publish(const struct found *found, uint32_t place, uint32_t newest,
                                         uint64_t hash) {
    _Atomic uint32_t *const bucket = &found->functions->buckets[hash % BUCKETS];
    struct function *const function = python_functions_function_at(found->functions, place);
    for (;;) { /* repeats only if another thread has published in between */
        const uint32_t before = newest;
        function->next = newest;
        /* pairs with the acquire load in python_functions_keep(), and with that of `newest` here */
        if (atomic_compare_exchange_strong_explicit(bucket, &newest, place, memory_order_release,
                                                    memory_order_acquire))
            return place;
        const uint32_t same = find_same(found, newest, before, hash);
        if (same)
            return same;
    }
}

/* Returns the place of the record with these contents, and makes the record if there is none.
 * Returns 0 if there is no room, or the memory cannot be read. */
static uint32_t python_functions_keep(const struct found *found) {
    struct python_functions *const functions = found->functions;
    const uint32_t units = units_of(found->parts);
    uint64_t hash;
    if (!hash_found(found, &hash))
        return 0;
    /* pairs with the exchange in python_functions_publish() */
    const uint32_t newest =
        atomic_load_explicit(&functions->buckets[hash % BUCKETS], memory_order_acquire);
    const uint32_t known = find_same(found, newest, 0, hash);
    const uint32_t place = known ? 0 : python_functions_reserve(functions, units);
    if (!place)
        return known;
    const bool is_filled =
        python_functions_fill(found, python_functions_function_at(functions, place), hash);
    const uint32_t number = is_filled ? python_functions_publish(found, place, newest, hash) : 0;
    if (number != place) {
        /* gives the room back; if another thread has reserved behind it, the room stays empty */
        uint32_t used = place - FIRST_PLACE + units;
        (void)atomic_compare_exchange_strong_explicit(&functions->used, &used, used - units,
                                                      memory_order_relaxed, memory_order_relaxed);
    }
    return number;
}

/* --- code objects --- */

_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "hashed as words");

/* Returns the place of the record that `word`, from the table `seen`, refers to; 0: it is of
 * another code object. Compares the contents, because the code object with these addresses may have
 * been freed, and replaced by another. */
static uint32_t find_seen(struct found *found, uint64_t word, uint64_t print) {
    const uint32_t place = word & ((1u << PLACE_BITS) - 1);
    if (!place || (word ^ print) >> PLACE_BITS)
        return 0;
    const bool is_it =
        find_parts(found) &&
        python_function_matches(found, python_functions_function_at(found->functions, place));
    return is_it ? place : 0;
}

uint32_t python_function(struct python_functions *functions, const struct python_offsets *offsets,
                         struct python_reader *reader, uintptr_t code) {
    struct found found = {.functions = functions, .offsets = offsets, .reader = reader};
    if (!find_objects(&found, code))
        return 0;
    const uint64_t print =
        hash_words(hash_word((uint32_t)found.first_line, code), found.objects, PARTS);
    _Atomic uint64_t *const seen = &functions->seen[(uint32_t)print % SEEN];
    /* pairs with the release store below */
    const uint64_t word = atomic_load_explicit(seen, memory_order_acquire);
    const uint32_t known = find_seen(&found, word, print);
    if (known)
        return known;
    const uint32_t number = find_parts(&found) ? python_functions_keep(&found) : 0;
    if (number)
        atomic_store_explicit(seen, (print >> PLACE_BITS) << PLACE_BITS | number,
                              memory_order_release);
    return number;
}

/* --- text --- */

enum { REPLACEMENT = 0xfffd, LAST_CHARACTER = 0x10ffff };
enum { CONTINUATION = 0x80, CONTINUATION_BITS = 6, CONTINUATION_MASK = 63 };

/* Reads a character whose first byte is the lowest. */
static uint32_t character_at(const uint8_t *bytes, uint32_t size) {
    uint32_t character = 0;
    for (uint32_t i = 0; i < size; i++)
        character |= (uint32_t)bytes[i] << 8 * i;
    const uint32_t surrogates = character >> 11;
    if (character == 0 || surrogates == 0xd800 >> 11 || character > LAST_CHARACTER)
        return REPLACEMENT;
    return character;
}

static char *put_continuation(char *text, uint32_t character, unsigned left) {
    while (left--)
        *text++ =
            (char)(CONTINUATION | (character >> left * CONTINUATION_BITS & CONTINUATION_MASK));
    return text;
}

static char *put_utf8(char *text, uint32_t character) {
    if (character < 0x80) {
        *text = (char)character;
        return text + 1;
    }
    if (character < 0x800) {
        *text = (char)(0xc0 | character >> 6);
        return put_continuation(text + 1, character, 1);
    }
    if (character < 0x10000) {
        *text = (char)(0xe0 | character >> 12);
        return put_continuation(text + 1, character, 2);
    }
    *text = (char)(0xf0 | character >> 18);
    return put_continuation(text + 1, character, 3);
}

void python_text(const uint8_t *bytes, uint32_t size, uint32_t character, char *text) {
    for (uint32_t i = 0; character && i + character <= size; i += character)
        text = put_utf8(text, character_at(bytes + i, character));
    *text = 0;
}

/* --- names --- */

/* Returns the record at `place`, or NULL if none is there. Checks the place and the record, because
 * a caller may pass any number. */
static const struct function *find_function(struct python_functions *functions, uint32_t place) {
    const uint32_t end = FIRST_PLACE + atomic_load_explicit(&functions->used, memory_order_relaxed);
    const uint32_t least = sizeof(struct function) / UNIT;
    if (place < FIRST_PLACE || place >= end || end - place < least)
        return NULL;
    const struct function *const function = python_functions_function_at(functions, place);
    for (int i = 0; i < PARTS; i++)
        if (function->parts[i].bytes > PYTHON_FUNCTIONS_BYTES / PARTS)
            return NULL;
    if (end - place < units_of(function->parts) || hash_function(function) != function->hash)
        return NULL;
    return function;
}

bool python_function_texts(struct python_functions *functions, uint32_t number, uint32_t position,
                           struct python_texts *texts) {
    const struct function *const function = find_function(functions, number);
    if (!function)
        return false;
    const struct part *const parts = function->parts;
    const uint8_t *const file = function->bytes + parts[NAME].bytes;
    const uint8_t *const lines = file + parts[FILE_PATH].bytes;
    *texts = (struct python_texts){
        .name = {function->bytes, parts[NAME].bytes, parts[NAME].character},
        .file = {file, parts[FILE_PATH].bytes, parts[FILE_PATH].character},
        .line = python_line(lines, parts[LINES].bytes, function->first_line, position),
        .start_line = function->first_line};
    return true;
}

bool python_function_name(struct python_functions *functions, uint32_t number, uint32_t position,
                          struct named_frame *named) {
    struct python_texts texts;
    if (!python_function_texts(functions, number, position, &texts))
        return false;
    python_text(texts.name.bytes, texts.name.size, texts.name.character, functions->name);
    python_text(texts.file.bytes, texts.file.size, texts.file.character, functions->file);
    *named = (struct named_frame){.type = "cpython",
                                  .function = functions->name,
                                  .file = functions->file,
                                  .line = texts.line,
                                  .start_line = texts.start_line};
    return true;
}
