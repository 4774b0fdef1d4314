/* Builds the resource attributes of this process, by OpenTelemetry's semantic conventions.
 *
 * The attributes are detected once, when the flush side starts in a process (a forked child detects
 * its own, with an instance id of its own); only the owner, which may change, is read at each
 * export. The application's published attributes (process_context.h) win over detected ones as long
 * as they are published; OTEL_RESOURCE_ATTRIBUTES, which the operator sets, wins over both,
 * OTEL_SERVICE_NAME over that, and the configuration file over all. Two kinds are never taken from
 * the application: telemetry.*, because its SDK did not make these profiles, and the command line,
 * which is never sent. Of the detected attributes only those that distinguish processes are sent,
 * unless the operator wants all of them: common/resource_attributes.def. Context: flush.
 */
#ifndef OTELPROF_RESOURCE_H
#define OTELPROF_RESOURCE_H

#include "attribute_set.h"
#include "config.h"
#include "context_payload.h"
#include "harvest.h"
#include "log.h"
#include "otlp_writer.h"

#include <stdint.h>

struct resource;

/* Opens the resource. `executable`: path of the program's file when the process began, or "".
 * `config` must live as long as the resource. Returns NULL without memory. */
struct resource *resource_open(const struct config *config, const struct log *log,
                               const char *executable);
/* Adds the configuration file's attributes, which win over all others. */
void resource_declare(struct resource *resource, const struct attribute_set *declared);
void resource_close(struct resource *resource);

/* Sets the start of profiling as the process's creation time if /proc does not show that time (in a
 * child that has changed its root since its fork). */
void resource_began(struct resource *resource, uint64_t unix_nano);

/* Updates the process's owner and the attributes that the application publishes. */
void resource_update(struct resource *resource);

/* Returns the application's published names of the keys that threads' contexts have by number, as
 * of the last update. */
const struct key_names *resource_key_names(const struct resource *resource);

/* Updates the resource, because threads have keys by number. If no context is known, the first call
 * searches for it at once; later calls search only as often as resource_update(). */
void resource_find_key_names(struct resource *resource);

/* Writes the attributes that must be sent into the request. */
void resource_write(const struct resource *resource, struct otlp_writer *writer);

/* Writes the attributes of a forked child that has ended: those of this process, but with the
 * child's ids, creation time and an instance id of its own. */
void resource_write_child(const struct resource *resource, const struct ended_child *child,
                          struct otlp_writer *writer);

/* Returns the value of the key in the source that wins; NULL if there is none, or it is not a
 * text. */
const char *resource_find(const struct resource *resource, const char *key);

#endif
