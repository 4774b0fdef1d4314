/* The `resource` of a configuration file: attributes, which win over attributes_list.
 *
 * An attribute is a text, a truth value, a whole number or a number. Arrays are not taken: no
 * attribute of ours has them. Resource detection is OTEL_PROFILER_RESOURCE's, and the schema URL
 * that of what we detect. Context: flush.
 */
#ifndef OTELPROF_DECLARED_RESOURCE_H
#define OTELPROF_DECLARED_RESOURCE_H

#include "complaints.h"
#include "document.h"
#include "encode/attribute_set.h"

/* Adds to `set` what `resource` says. */
void declared_resource_read(struct document *document, const yaml_node_t *resource,
                            struct attribute_set *set, struct complaints *complaints);

#endif
