/* Who sends: the resource attributes of this process, by OpenTelemetry's semantic conventions.
 *
 * Detected once, when the flush side starts in a process (a forked child is another process and
 * detects again, with an instance id of its own); the owner, which may change, at each export. What
 * the application publishes about itself (process_context.h) wins over that, for as long as it is
 * published; OTEL_RESOURCE_ATTRIBUTES, the operator's word, wins over both, OTEL_SERVICE_NAME
 * over that, and the configuration file over all. Not taken from the application: telemetry.*,
 * because it is not its SDK that made these profiles, and the command line, which is never sent.
 * Only those attributes that are detected and tell processes apart are sent, unless the operator
 * wants all of it: common/resource_attributes.def. Context: flush.
 */
#ifndef OTELPROF_RESOURCE_H
#define OTELPROF_RESOURCE_H

#include "attribute_set.h"
#include "config.h"
#include "context_payload.h"
#include "log.h"
#include "otlp_writer.h"

#include <stdint.h>

struct resource;

/* `executable`: its path when the process began, or "". NULL: no memory. */
struct resource *resource_open(const struct config *config, const struct log *log,
                               const char *executable);
/* Adds what the configuration file says: it wins over all else. */
void resource_declare(struct resource *resource, const struct attribute_set *declared);
void resource_close(struct resource *resource);

/* When profiling of the process began, which is when it was created where /proc does not say: in a
 * child that has changed its root since its fork. */
void resource_began(struct resource *resource, uint64_t unix_nano);

/* Looks whether the process has another owner than before, and whether the application publishes
 * something else about itself. */
void resource_update(struct resource *resource);

/* The names of the keys that threads' contexts have by number, of what the application publishes;
 * as they were found by the last update. */
const struct key_names *resource_key_names(const struct resource *resource);

/* Looks for them at once, unless that was in vain before: there are threads that have such keys. */
void resource_find_key_names(struct resource *resource);

/* Writes the attributes that are to be sent into the request. */
void resource_write(const struct resource *resource, struct otlp_writer *writer);

/* The value of a text attribute, or NULL. */
const char *resource_find(const struct resource *resource, const char *key);

#endif
