#include "sample_identity.h"

#include "redact.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(IDENTITY_ATTRIBUTES <= (int)OTLP_SAMPLE_ATTRIBUTES, "all have room");

/* Caches a sample's references, because the sample may be in several profiles. */
struct sample_references {
    bool known;
    int32_t stack;
    size_t attribute_count;
    int32_t attributes[SAMPLE_ATTRIBUTES];
};

/* Caches the references of a context's samples. */
struct context_references {
    int32_t link;
    size_t attribute_count;
    int32_t attributes[CONTEXT_LABELS];
};

static const char *const age_words[] = {
    [AGE_UNKNOWN] = "",          [AGE_10_SECONDS] = "<10s", [AGE_1_MINUTE] = "10s-1m",
    [AGE_10_MINUTES] = "1m-10m", [AGE_1_HOUR] = "10m-1h",   [AGE_1_DAY] = "1h-1d",
    [AGE_OLDER] = ">1d"};

static const struct thread_references *find_thread_references(struct sample_identities *s,
                                                              const struct harvest_sample *sample) {
    struct thread_references *const known = &s->thread;
    if (known->sample && is_same_thread(known->sample, sample))
        return known;
    known->sample = sample;
    known->count = 0;
    if (sample->tid)
        known->attributes[known->count++] = otlp_attribute_int(
            s->writer, profile_attributes[ATTRIBUTE_THREAD_ID_INDEX].key, sample->tid, "");
    if (sample->thread_name[0])
        known->attributes[known->count++] =
            otlp_attribute_string(s->writer, profile_attributes[ATTRIBUTE_THREAD_NAME_INDEX].key,
                                  redact_name(s->api->config->redact, sample->thread_name));
    return known;
}

/* Returns the reference of the attribute, 0 if the sample does not have it. */
static int32_t attribute_of(struct sample_identities *s, const struct harvest_sample *sample,
                            enum sample_attribute attribute) {
    const struct profile_attribute *const known = &profile_attributes[attribute];
    if (!(profile_kinds[sample->kind].attributes >> attribute & 1))
        return 0;
    if (attribute == ATTRIBUTE_HEAP_AGE_INDEX && sample->age != AGE_UNKNOWN)
        return otlp_attribute_string(s->writer, known->key, age_words[sample->age]);
    if (sample->flags & known->flag)
        return otlp_attribute_bool(s->writer, known->key, true);
    return wait_attribute(&s->waits, sample, attribute);
}

static size_t attributes_of(struct sample_identities *s, const struct harvest_sample *sample,
                            int32_t attributes[static SAMPLE_ATTRIBUTES]) {
    const struct thread_references *const thread = find_thread_references(s, sample);
    size_t count = thread->count;
    memcpy(attributes, thread->attributes, sizeof thread->attributes);
    for (int i = THREAD_ATTRIBUTES; i < SAMPLE_ATTRIBUTES; i++) {
        const int32_t attribute = attribute_of(s, sample, (enum sample_attribute)i);
        if (attribute)
            attributes[count++] = attribute;
    }
    return count;
}

static const struct context_references *find_context_references(struct sample_identities *s,
                                                                size_t item) {
    static const struct context_references none;
    const struct exported_context *const context = context_of_item(s->merge, item);
    if (!context)
        return &none;
    struct context_references *const known = s->contexts[context->number];
    if (known)
        return known;
    struct context_references *const listed = arena_take_raw(&s->arena, sizeof *listed);
    if (!listed)
        return &none;
    listed->link = context_link(context, s->writer);
    listed->attribute_count = context_attributes(context, s->writer, listed->attributes);
    s->contexts[context->number] = listed;
    return listed;
}

static const struct sample_references *find_references(struct sample_identities *s,
                                                       const struct valued_sample *valued) {
    struct sample_references *const known = &s->samples[valued->number];
    const struct harvest_sample *const sample = valued->sample;
    if (known->known)
        return known;
    known->known = true;
    known->attribute_count = attributes_of(s, sample, known->attributes);
    known->stack = sample->flags & SAMPLE_FLAG_OWN_TIME
                       ? dictionary_named_stack(s->dictionary, "[libotelprof]")
                   : sample->flags & SAMPLE_FLAG_KERNEL
                       ? dictionary_named_stack(s->dictionary, "[kernel]")
                       : dictionary_stack(s->dictionary, sample->frames, sample->frame_count,
                                          sample->interval);
    return known;
}

struct otlp_identity sample_identity(struct sample_identities *s,
                                     const struct valued_sample *valued,
                                     int32_t attributes[static IDENTITY_ATTRIBUTES]) {
    if (!valued->sample)
        return (struct otlp_identity){.stack = dictionary_named_stack(s->dictionary, "[other]")};
    const struct sample_references *const to = find_references(s, valued);
    const struct context_references *const context = find_context_references(s, valued->number);
    memcpy(attributes, to->attributes, to->attribute_count * sizeof *attributes);
    memcpy(attributes + to->attribute_count, context->attributes,
           context->attribute_count * sizeof *attributes);
    return (struct otlp_identity){to->stack, context->link, attributes,
                                  to->attribute_count + context->attribute_count};
}

/* --- one merge --- */

struct sample_identities sample_identities_open(const struct profile_exporter *exporter,
                                                struct otlp_writer *writer,
                                                struct dictionary *dictionary) {
    return (struct sample_identities){
        .api = exporter->api,
        .writer = writer,
        .dictionary = dictionary,
        .waits = {.api = exporter->api, .writer = writer, .symbolizer = exporter->symbolizer}};
}

bool sample_identities_begin(struct sample_identities *s, const struct merge *merge) {
    s->merge = merge;
    s->thread = (struct thread_references){.count = 0};
    s->samples = calloc(merge->items.count + 1, sizeof *s->samples);
    s->contexts = calloc(merge->context_count + 1, sizeof *s->contexts);
    return s->samples && s->contexts;
}

void sample_identities_end(struct sample_identities *s) {
    free(s->samples);
    free(s->contexts);
    arena_free(&s->arena);
}
