#include "config_kind.h"

#include "condition.h"
#include "config_values.h"
#include "context_source.h"
#include "profile_kind.h"

#include <stdint.h>
#include <string.h>

static const uint64_t day_ms = UINT64_C(1000) * 60 * 60 * 24;

/* Lists the words of profile_kinds.def; test_config.c compares the two lists. */
#define TYPE_WORDS "cpu, alloc, heap, heap_peak, off_cpu, sched_delay, lock, threads, mmap"

const char *config_kind_expectation(enum config_kind kind) {
    switch (kind) {
    case OPTION_BOOL:
    case OPTION_BOOL_OTLP:
        return "is neither true nor false";
    case OPTION_RESOURCE:
        return "is not one of identity, full";
    case OPTION_START:
        return "is neither on nor off";
    case OPTION_LOG_LEVEL:
        return "is not one of none, error, warn, info, debug";
    case OPTION_EXPORTERS:
        return "is not a list of otlp, otlp_file, console, nor none alone";
    case OPTION_FILE_FORMAT:
        return "is not one of json, protobuf";
    case OPTION_ENDPOINT_OTLP:
        return "is not an http://, https:// or unix: URL";
    case OPTION_PROTOCOL_OTLP:
        return "is not one of http/protobuf, http/json, grpc";
    case OPTION_COMPRESSION_OTLP:
        return "is not one of none, gzip, zstd";
    case OPTION_INTERVAL:
    case OPTION_MILLISECONDS:
    case OPTION_MILLISECONDS_OTLP:
        return "is not a number of milliseconds";
    case OPTION_BYTES:
        return "is not a number of bytes";
    case OPTION_TYPES:
        return "is not all, nor a list of " TYPE_WORDS;
    case OPTION_CONTEXT:
        return "is not default, none, nor a list of sources of context";
    case OPTION_FREQUENCY:
        return "is not a frequency from 1 to 4000";
    case OPTION_OVERHEAD:
        return "is neither none nor a percentage from 0 to 100";
    case OPTION_REQUEST_BYTES:
        return "is not a number of bytes from 10000 to 67108864";
    case OPTION_OBJECTS:
        return "is not a number from 64 to 16777216";
    case OPTION_DEPTH:
        return "is not a depth from 1 to 1024";
    case OPTION_SIGNAL:
        return "is not a signal that can be used for sampling";
    case OPTION_PERCENT:
        return "is not a percentage from 0 to 100";
    case OPTION_CONDITION:
        return "is not none, nor a list of cpu>N%, rss>NMiB (KiB, GiB) and span>Ns (ms, min)";
    case OPTION_SYMBOLS:
        return "is not one of none, functions, lines";
    default:
        return "is not a number from 1 on";
    }
}

/* --- words --- */

/* Lists the words of each enum in config.h. parse_choice() stores a value as an unsigned: if an
 * enum had another size, a test of the defaults would fail. */
static const struct choice {
    enum config_kind kind;
    unsigned count;
    const char *words[5];
} choices[] = {{OPTION_RESOURCE, 2, {"identity", "full"}},
               {OPTION_START, 2, {"on", "off"}},
               {OPTION_LOG_LEVEL, 5, {"none", "error", "warn", "info", "debug"}},
               {OPTION_FILE_FORMAT, 2, {"json", "protobuf"}},
               {OPTION_PROTOCOL_OTLP, 3, {"http/protobuf", "http/json", "grpc"}},
               {OPTION_COMPRESSION_OTLP, 3, {"none", "gzip", "zstd"}},
               {OPTION_SYMBOLS, 3, {"none", "functions", "lines"}}};

static const char *const type_words[PROFILE_WORDS] = {
#define KIND(constant, profile, name, title, time, period, period_type, period_unit, attributes)   \
    name,
#define SOURCE(profile, name, of) name,
#include "profile_kinds.def"
};

const char *const *config_kind_words(enum config_kind kind, size_t *count) {
    *count = PROFILE_WORDS;
    if (kind == OPTION_TYPES)
        return type_words;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        *count = choices[i].count;
        if (choices[i].kind == kind)
            return choices[i].words;
    }
    *count = 0;
    return NULL;
}

static bool parse_choice(enum config_kind kind, const char *text, void *field) {
    size_t count;
    unsigned index;
    const char *const *const words = config_kind_words(kind, &count);
    if (!words || !parse_word(text, words, count, &index))
        return false;
    memcpy(field, &index, sizeof index);
    return true;
}

static bool parse_bool(const char *text, bool *value) {
    if (!text_equals_ignoring_case(text, "true") && !text_equals_ignoring_case(text, "false"))
        return false;
    *value = text_equals_ignoring_case(text, "true");
    return true;
}

/* --- sets of words --- */

/* Parses a set of words. The word `whole` means the set `all`. */
static bool parse_bits(const char *text, const char *const *words, size_t count, const char *whole,
                       unsigned all, unsigned *bits) {
    unsigned found = all;
    if (!text_equals_ignoring_case(text, whole) && !parse_set(text, words, count, &found))
        return false;
    *bits = found;
    return true;
}

static bool parse_context(const char *text, unsigned *bits) {
    static const char *const words[CONTEXT_SOURCES] = {
#define SOURCE(constant, name, meaning) name,
#include "context_sources.def"
#undef SOURCE
    };
    const bool all = text_equals_ignoring_case(text, "default");
    return parse_bits(text, words, CONTEXT_SOURCES, all ? "default" : "none", all ? CONTEXT_ALL : 0,
                      bits);
}

static bool parse_exporters(const char *text, unsigned *bits) {
    static const char *const words[] = {"otlp", "otlp_file", "console"};
    return parse_bits(text, words, 3, "none", 0, bits);
}

/* --- any kind --- */

static bool parse_within(const char *text, uint64_t low, uint64_t high, uint64_t *field) {
    uint64_t value;
    if (!parse_number(text, low, high, &value))
        return false;
    *field = value;
    return true;
}

bool config_kind_parse(enum config_kind kind, const char *text, void *field) {
    switch (kind) {
    case OPTION_BOOL:
    case OPTION_BOOL_OTLP:
        return parse_bool(text, field);
    case OPTION_EXPORTERS:
        return parse_exporters(text, field);
    case OPTION_INTERVAL:
        return parse_within(text, 1, day_ms, field);
    case OPTION_MILLISECONDS:
        return parse_within(text, 0, day_ms, field);
    case OPTION_MILLISECONDS_OTLP:
        return parse_within(text, 1, UINT64_C(1000) * 60 * 60, field);
    case OPTION_BYTES:
        return parse_within(text, 1, UINT64_C(1) << 40, field);
    case OPTION_COUNT:
        return parse_within(text, 1, UINT64_C(1) << 30, field);
    case OPTION_TYPES:
        return parse_bits(text, type_words, PROFILE_WORDS, "all", (1u << PROFILE_WORDS) - 1, field);
    case OPTION_CONTEXT:
        return parse_context(text, field);
    case OPTION_FREQUENCY:
        return parse_within(text, 1, 4000, field);
    case OPTION_OVERHEAD:
        return parse_overhead(text, field);
    case OPTION_REQUEST_BYTES:
        return parse_within(text, 10000, UINT64_C(64) << 20, field);
    case OPTION_OBJECTS:
        return parse_within(text, 64, UINT64_C(1) << 24, field);
    case OPTION_DEPTH:
        return parse_within(text, 1, 1024, field);
    case OPTION_SIGNAL:
        return parse_signal(text, field);
    case OPTION_PERCENT:
        return parse_within(text, 0, 100, field);
    case OPTION_CONDITION:
        return condition_parse(text, field);
    default:
        return parse_choice(kind, text, field);
    }
}
