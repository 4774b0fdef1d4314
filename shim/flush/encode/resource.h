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
 * Returns NULL without memory. */
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

/* Searches at once for the names of keys, because threads have such keys; does nothing if an
 * earlier search found none. */
void resource_find_key_names(struct resource *resource);

/* Writes the attributes that must be sent into the request. */
void resource_write(const struct resource *resource, struct otlp_writer *writer);

/* Writes the attributes of a forked child that is no more: it had this process's, but for what
 * distinguishes processes. */
void resource_write_child(const struct resource *resource, const struct ended_child *child,
                          struct otlp_writer *writer);

/* Returns the value of a text attribute, or NULL. */
const char *resource_find(const struct resource *resource, const char *key);

#endif
