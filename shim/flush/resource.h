/* Who sends: the resource attributes of this process, by OpenTelemetry's semantic conventions.
 *
 * Read once, when the flush side starts in a process (a forked child is another process and reads
 * again, with an instance id of its own). OTEL_RESOURCE_ATTRIBUTES adds to what is detected and
 * wins over it; OTEL_SERVICE_NAME wins over both. Context: flush.
 */
#ifndef OTELPROF_RESOURCE_H
#define OTELPROF_RESOURCE_H

#include "config.h"
#include "log.h"
#include "otlp_writer.h"

struct resource;

/* `executable`: its path when the process began, or "". NULL: no memory. */
struct resource *resource_open(const struct config *config, const struct log *log,
                               const char *executable);
void resource_close(struct resource *resource);

/* Writes all attributes into the request. */
void resource_write(const struct resource *resource, struct otlp_writer *writer);

/* The value of a text attribute, or NULL. */
const char *resource_find(const struct resource *resource, const char *key);

#endif
