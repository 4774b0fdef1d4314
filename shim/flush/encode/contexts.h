/* Converts the contexts of an interval's samples for the export: a link, and labels, which are
 * texts with keys.
 *
 * OTEL_PROFILER_LABELS selects labels by globs (glob.h) of keys. Other labels are not sent, and do
 * not count as lost.
 *
 * A thread's context is not trusted. A key by index gets its name from the process context
 * (context_payload.h). Left out, and counted (DROP_CONTEXT_KEY), are keys without a name, invalid
 * ones, and the profiler's own: a sample has an attribute once, and the profiler's measurement
 * wins. `.` and `_` count as equal in keys, because receivers that turn attributes into labels
 * replace one by the other. Of two equal keys the last wins. In a value, bytes that are not UTF-8,
 * and NUL, become `?`. A value is hidden if it or its key matches OTEL_PROFILER_REDACT; keys stay,
 * and ids of spans, which are no names.
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

/* Fills merge->contexts. Returns the number of labels left out, one for each sample. If memory runs
 * out, the remaining samples have no link and no labels, and each of them counts once. */
uint64_t contexts_name(struct merge *merge, const struct key_names *names,
                       const struct config *config);

/* Returns the context of an item of the merge; NULL: none. */
const struct exported_context *context_of_item(const struct merge *merge, size_t item);

/* Adds the labels to the dictionary and returns their number. */
size_t context_attributes(const struct exported_context *context, struct otlp_writer *writer,
                          int32_t attributes[static CONTEXT_LABELS]);
int32_t context_link(const struct exported_context *context, struct otlp_writer *writer);

#endif
