/* Converts the contexts of an interval's samples for the export: a link, and labels, which are
 * texts with keys.
 *
 * OTEL_PROFILER_LABELS selects labels by globs (glob.h) of keys. Other labels are not sent, and do
 * not count as lost.
 *
 * A thread's context is not trusted. A key by index gets its name from the process context
 * (context_payload.h). A label is left out, and counted (DROP_CONTEXT_KEY), if its key has no name,
 * is invalid, or is one of the profiler's: a sample has an attribute once, and the profiler's
 * measurement wins. With a span, that includes `trace_id` and `span_id`. `.` and `_` count as equal
 * in keys, because receivers that turn attributes into labels replace one by the other. Of two
 * equal keys the last wins. In a value, bytes that are not UTF-8, and NUL, become `?`. A value is
 * hidden if it or its key matches OTEL_PROFILER_REDACT. Keys and the ids of spans are never hidden.
 *
 * Samples that differ only in unsent data are merged into one. Context: flush.
 */
#ifndef OTELPROF_CONTEXTS_H
#define OTELPROF_CONTEXTS_H

#include "context_payload.h"
#include "merge.h"
#include "otlp_writer.h"

/* Bounds the labels of a context, including the two of OTEL_PROFILER_LINK_ATTRIBUTES. */
enum { CONTEXT_LABELS = CONTEXT_ATTRIBUTES + 2 };

struct label {
    const char *key;
    const char *value;
};

struct exported_context {
    const struct sample_context *span; /* NULL: no span */
    uint32_t number;   /* number in order of first appearance in the merge, from 0 */
    uint32_t left_out; /* number of attributes that are no valid labels */
    uint32_t label_count;
    struct label labels[];
};

/* Returns true if the merge has keys by index that `names` does not name. */
bool contexts_lack_names(const struct merge *merge, const struct key_names *names);

/* Fills merge->contexts, and merges items that differ only in unsent data. Returns the number of
 * labels left out, each counted once for each item that has it. If memory runs out, the remaining
 * items have no link and no labels, and each of them that has a context counts once. */
uint64_t contexts_name(struct merge *merge, const struct key_names *names,
                       const struct config *config);

/* Returns the context of an item of the merge; NULL: none. */
const struct exported_context *context_of_item(const struct merge *merge, size_t item);

/* Add the labels, or the link, to the dictionary. context_attributes() stores the references of the
 * labels, and returns their number; context_link() returns the link's reference, 0 if there is no
 * span. */
size_t context_attributes(const struct exported_context *context, struct otlp_writer *writer,
                          int32_t attributes[static CONTEXT_LABELS]);
int32_t context_link(const struct exported_context *context, struct otlp_writer *writer);

#endif
