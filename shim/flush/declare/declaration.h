/* Reads OTEL_CONFIG_FILE: the part of OpenTelemetry's declarative configuration that concerns the
 * profiler.
 *
 * OpenTelemetry's model has no section for profiles yet. So the profiler reads `disabled`,
 * `log_level`, `resource` and distribution.otelprof, and ignores sections of other signals.
 * Environment variables hold for settings that the file lacks. A file that is unreadable or
 * malformed disables profiling in the process: it might have contained `disabled`, or names to
 * hide. A wrong value is logged, and the rest holds. The file is read once for a process and its
 * forked children. Context: flush.
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
    const char
        *refused; /* the reason why nothing is profiled, a constant; NULL: the file was accepted */
    size_t refused_line; /* 0: the reason has no single line */
    bool disabled;
    struct config config; /* merged settings: the file's settings override the environment's */
    struct attribute_set attributes;
    char text[DECLARED_CONFIG_BYTES]; /* storage of the configuration's strings */
};

/* Reads api->config->config_file and logs its errors. Returns NULL without memory. */
struct declaration *declaration_open(const struct capture_api *api);
void declaration_close(struct declaration *declaration);

#endif
