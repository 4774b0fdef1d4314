/* Parses texts that set variables while the program runs (settable.def): lines of NAME=value, in a
 * request or in the watched file.
 *
 * Blank lines and lines that begin with # are ignored; blanks around a name and a value are
 * removed; there are no quotes. An empty value removes an earlier setting of the same source. If a
 * name occurs twice, the last line holds. Only values that were prepared at the start can be set:
 * no type that the configuration lacks, and no deeper stack. Pure functions. Context of all: flush.
 */
#ifndef OTELPROF_SETTABLE_H
#define OTELPROF_SETTABLE_H

#include "config.h"
#include "settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum settable {
#define SETTABLE(field, kind, name, finer) SETTABLE_##field,
#include "settable.def"
#undef SETTABLE
    SETTABLES
};

/* Holds the values of all settable variables; fields have the types of struct config. */
struct settable_values {
    enum at_start start;
    unsigned types;
    uint64_t cpu_frequency;
    uint64_t alloc_interval;
    uint64_t wait_frequency;
    uint64_t lock_interval;
    uint64_t max_overhead;
    uint64_t max_stack_depth;
    enum log_level log_level;
    uint64_t cpu_threshold;
    struct condition condition;
};

/* Holds values of some of the variables. */
struct overlay {
    unsigned has; /* bits 1u << enum settable: the variables that have a value here */
    struct settable_values values;
};

enum { SETTABLE_VALUE_BYTES = 128 }; /* fits the longest value, a list of all types */

/* Returns the configured values. */
struct settable_values settable_configured(const struct config *config);

/* Converts the values into settings for capture. */
struct settings_values settable_settings(const struct settable_values *values);

/* Return the name of a variable, and write its value as the environment would have it. */
const char *settable_name(enum settable settable);
void settable_write(const struct settable_values *values, enum settable settable,
                    char text[static SETTABLE_VALUE_BYTES]);

/* Receives the error of a line: "NAME="x" is not a number of bytes". The line itself is ignored. */
typedef void overlay_wrong(void *arg, unsigned line, const char *what);

/* Adds the lines of `text` to `overlay`. `config` is the process's start configuration. */
void overlay_read(struct overlay *overlay, const char *text, size_t size,
                  const struct config *config, overlay_wrong *wrong, void *arg);

/* Replaces those of `values` that `overlay` has. */
void overlay_lay(struct settable_values *values, const struct overlay *overlay);

/* Combines `values` with `count` overlays: each variable gets the finest of the values, so nothing
 * becomes coarser and no type is lost. If profiling is off in `values`, only types that an overlay
 * asks for are turned on; if none asks for any, the types stay. */
void overlay_refine(struct settable_values *values, const struct overlay *const overlays[],
                    size_t count);

#endif
