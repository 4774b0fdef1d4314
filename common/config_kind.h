/* Lists the kinds of values that variables have (second column of options.def), and declares one
 * parser for all kinds that need no room for text. Pure functions. Context: any. Async-signal-safe:
 * yes. */
#ifndef OTELPROF_CONFIG_KIND_H
#define OTELPROF_CONFIG_KIND_H

#include <stdbool.h>
#include <stddef.h>

/* Lists the kinds. The kinds *_OTLP have a second form for profiles. */
enum config_kind {
    OPTION_BOOL,
    OPTION_BOOL_OTLP,
    OPTION_STRING,
    OPTION_STRING_OTLP,
    OPTION_RESOURCE,
    OPTION_START,
    OPTION_LOG_LEVEL,
    OPTION_EXPORTERS,
    OPTION_FILE_FORMAT,
    OPTION_ENDPOINT_OTLP,
    OPTION_PROTOCOL_OTLP,
    OPTION_COMPRESSION_OTLP,
    OPTION_INTERVAL,
    OPTION_MILLISECONDS,
    OPTION_MILLISECONDS_OTLP,
    OPTION_BYTES,
    OPTION_COUNT,
    OPTION_TYPES,
    OPTION_CONTEXT,
    OPTION_LABELS,
    OPTION_FREQUENCY,
    OPTION_OBJECTS,
    OPTION_OVERHEAD,
    OPTION_REQUEST_BYTES,
    OPTION_DEPTH,
    OPTION_SYMBOLS,
    OPTION_SIGNAL,
    OPTION_REDACT,
    OPTION_PERCENT,
    OPTION_CONDITION,
};

/* Parses `text` into `field`, whose type is the type that struct config has for the kind: a bool, a
 * uint64_t, a struct condition, or an enum or a set of bits of the size of an unsigned. Returns
 * false, and leaves the field unchanged, if `text` is not of the kind, or if the kind's values are
 * texts. */
bool config_kind_parse(enum config_kind kind, const char *text, void *field);

/* Returns why a text is not of the kind: "is not a number of bytes". */
const char *config_kind_expectation(enum config_kind kind);

/* Returns the words of a kind whose value is one of them or, for OPTION_TYPES, a set of them, in
 * the order of their numbers or bits. NULL: the kind has no such words. */
const char *const *config_kind_words(enum config_kind kind, size_t *count);

#endif
