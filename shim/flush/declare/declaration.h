/* What OTEL_CONFIG_FILE says: OpenTelemetry's declarative configuration, as far as it is about us.
 *
 * Its model has no section for profiles. So `disabled`, `log_level`, `resource` and
 * distribution.otelprof are read, what is for the other signals is left alone, and the environment
 * variables hold for what the file does not say. A file that cannot be read, or is not what it
 * should be, refuses the process as a whole: it may have said `disabled`, or which names to hide.
 * A wrong value is said, and the rest holds.
 * It is read once in a process and its forked children. Context: flush.
 */
#ifndef OTELPROF_DECLARATION_H
#define OTELPROF_DECLARATION_H

#include "config.h"
#include "encode/attribute_set.h"
#include "harvest.h"

#include <stdbool.h>
#include <stddef.h>

enum { DECLARED_CONFIG_BYTES = 16384 };

struct declaration {
    const char *refused; /* nothing is profiled: why, a constant; NULL otherwise */
    size_t refused_line; /* 0: of no line */
    bool disabled;
    struct config config; /* the settings of both, the file's before the environment's */
    struct attribute_set attributes;
    char text[DECLARED_CONFIG_BYTES]; /* the configuration's */
};

/* Reads api->config->config_file, and says what is wrong with it. NULL: no memory. */
struct declaration *declaration_open(const struct capture_api *api);
void declaration_close(struct declaration *declaration);

#endif
