/* Reads the `resource` section of a configuration file: attributes, which override attributes_list.
 *
 * An attribute is a string, a boolean, an integer or a double. Arrays are refused, because no
 * attribute of the profiler's output has one. The file's settings of resource detection and of the
 * schema URL are ignored: OTEL_PROFILER_RESOURCE sets the detection, and the schema URL belongs to
 * the detected attributes. Context: flush.
 */
#ifndef OTELPROF_DECLARED_RESOURCE_H
#define OTELPROF_DECLARED_RESOURCE_H

#include "complaints.h"
#include "document.h"
#include "encode/attribute_set.h"

/* Adds the attributes of `resource` to `set`. */
void declared_resource_read(struct document *document, const yaml_node_t *resource,
                            struct attribute_set *set, struct complaints *complaints);

#endif
