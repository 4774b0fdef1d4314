/* Lists the identities of samples in the dictionary: stack, link and attributes.
 *
 * A sample may be in several profiles, and many samples have one context or one thread, so each is
 * looked up once, when the first profile needs it: only samples that are really sent are looked up.
 * Context: flush.
 */
#ifndef OTELPROF_SAMPLE_IDENTITY_H
#define OTELPROF_SAMPLE_IDENTITY_H

#include "arena.h"
#include "contexts.h"
#include "dictionary.h"
#include "profile_export.h"
#include "sample_values.h"
#include "wait_attributes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Counts the thread's attributes, the first of the list, which are looked up once for a
     * thread. */
    THREAD_ATTRIBUTES = ATTRIBUTE_THREAD_NAME_INDEX + 1,
    IDENTITY_ATTRIBUTES = SAMPLE_ATTRIBUTES + CONTEXT_LABELS
};

/* Caches the references of the previous sample's thread, because samples come sorted by thread. */
struct thread_references {
    const struct harvest_sample *sample; /* any sample of the thread; NULL: there was none yet */
    size_t count;
    int32_t attributes[THREAD_ATTRIBUTES];
};

struct sample_identities {
    const struct capture_api *api;
    struct otlp_writer *writer;
    struct dictionary *dictionary;
    const struct merge *merge;
    struct sample_references *samples;    /* by the sample's number in the merge */
    struct context_references **contexts; /* by the context's number; NULL: not listed yet */
    struct arena arena;                   /* owns the contexts */
    struct thread_references thread;
    struct wait_attributes waits;
};

/* Returns identities of one message. The caller keeps the writer and the dictionary. */
struct sample_identities sample_identities_open(const struct profile_exporter *exporter,
                                                struct otlp_writer *writer,
                                                struct dictionary *dictionary);

/* Begins with the samples of a merge. Returns false if there is no memory. In both cases the
 * caller must call sample_identities_end(), which frees the memory. */
bool sample_identities_begin(struct sample_identities *identities, const struct merge *merge);
void sample_identities_end(struct sample_identities *identities);

/* Returns the identity of a sample of the merge, with `attributes` as its memory, or that of
 * "[other]". */
struct otlp_identity sample_identity(struct sample_identities *identities,
                                     const struct valued_sample *valued,
                                     int32_t attributes[static IDENTITY_ATTRIBUTES]);

#endif
