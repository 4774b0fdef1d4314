/* The variables that may change while the program runs (settable.def), and texts that set them:
 * lines of NAME=value, as a request or the watched file has them.
 *
 * Blank lines and those that begin with # say nothing; blanks around a name and a value are no part
 * of them; there are no quotes. An empty value takes back what the same text, or one before it, has
 * said. A name that is there twice counts as its last.
 * What was not made ready at the start cannot be set: a type that the configuration has not, and a
 * deeper stack. Pure functions. Context of all: flush.
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

/* Of their kinds' types in struct config. */
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

/* Some of the variables. */
struct overlay {
    unsigned has; /* 1u << enum settable */
    struct settable_values values;
};

enum { SETTABLE_VALUE_BYTES = 128 }; /* of the longest value, a list of all types */

/* What the configuration says. */
struct settable_values settable_configured(const struct config *config);

/* What capture is told of it. */
struct settings_values settable_settings(const struct settable_values *values);

/* The name of a variable, and its value as the environment would have it. */
const char *settable_name(enum settable settable);
void settable_write(const struct settable_values *values, enum settable settable,
                    char text[static SETTABLE_VALUE_BYTES]);

/* Receives what is wrong with a line, which is left out: "NAME="x" is not a number of bytes". */
typedef void overlay_wrong(void *arg, unsigned line, const char *what);

/* Adds what the lines of `text` say to `overlay`, in a process that started with `config`. */
void overlay_read(struct overlay *overlay, const char *text, size_t size,
                  const struct config *config, overlay_wrong *wrong, void *arg);

/* `overlay` holds where it says something. */
void overlay_lay(struct settable_values *values, const struct overlay *overlay);

/* The finer of each, of `count` overlays at once: nothing becomes coarser, and no type is lost. Of
 * types that are off by `values` those alone are turned on that an overlay asks for. */
void overlay_refine(struct settable_values *values, const struct overlay *const overlays[],
                    size_t count);

#endif
