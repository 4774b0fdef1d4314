/* The contexts of an interval's samples, as they leave the process: a link, and labels, which are
 * texts under keys.
 *
 * OTEL_PROFILER_LABELS chooses labels by globs (glob.h) of keys. What it does not choose is not
 * sent, and is not counted as lost.
 *
 * What a program publishes about a thread is a stranger's word. A key by index gets its name from
 * the process context (context_payload.h). Left out, and counted (DROP_CONTEXT_KEY), are keys
 * without a name, those that could not be a key, and those that are our own: an attribute stands in
 * a sample once, and what the profiler has measured wins. `.` and `_` make no difference between
 * two keys, as receivers that make labels of attributes write one for the other. Of two that are
 * the same the last wins. In a value, what is not UTF-8, and NUL, becomes `?`. A value is hidden if
 * it or its key fits OTEL_PROFILER_REDACT: keys stay, and ids of spans, which name nothing.
 *
 * Samples that differ in nothing but what is not sent are one.
 * Context: flush.
 */
#ifndef OTELPROF_CONTEXTS_H
#define OTELPROF_CONTEXTS_H

#include "context_payload.h"
#include "merge.h"
#include "otlp_writer.h"

/* Of one context: its labels, and the two of OTEL_PROFILER_LINK_ATTRIBUTES. */
enum { CONTEXT_LABELS = CONTEXT_ATTRIBUTES + 2 };

struct label {
    const char *key;
    const char *value;
};

struct exported_context {
    const struct sample_context *span; /* NULL: none */
    uint32_t number;                   /* in order of first appearance in the merge, from 0 */
    uint32_t left_out;                 /* attributes that could be no labels */
    uint32_t label_count;
    struct label labels[];
};

/* Whether there are keys by index in the merge for which `names` has no name. */
bool contexts_lack_names(const struct merge *merge, const struct key_names *names);

/* Fills merge->contexts. Returns how many labels were left out, of one sample each; on the way
 * memory may run out: then samples are without link and labels, and count as one each. */
uint64_t contexts_name(struct merge *merge, const struct key_names *names,
                       const struct config *config);

/* That of an item of the merge; NULL: none. */
const struct exported_context *context_of_item(const struct merge *merge, size_t item);

/* Lists the labels in the dictionary; returns how many there are. */
size_t context_attributes(const struct exported_context *context, struct otlp_writer *writer,
                          int32_t attributes[static CONTEXT_LABELS]);
int32_t context_link(const struct exported_context *context, struct otlp_writer *writer);

#endif
