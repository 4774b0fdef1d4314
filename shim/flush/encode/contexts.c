#include "contexts.h"

#include "glob.h"
#include "redact.h"
#include "text_numbers.h"
#include "utf8.h"

#include <string.h>

static const char trace_key[] = "trace_id";
static const char span_key[] = "span_id";

struct naming {
    struct merge *merge;
    const struct key_names *names;
    const struct config *config;
    struct intern seen;
    /* struct exported_context, by the context's number in `seen`; NULL: there was no memory */
    struct arena_list named;
    bool withheld; /* contexts may differ in data that is not sent */
};

/* Collects the labels of one context. */
struct found {
    uint32_t count;
    uint32_t left_out;
    struct label labels[CONTEXT_LABELS];
};

/* --- keys --- */

static char letter(char c) {
    return c == '.' ? '_' : c;
}

static bool same_key(const char *a, const char *b) {
    for (; *a && letter(*a) == letter(*b); a++)
        b++;
    return !*a && !*b;
}

static bool is_profiler_key(const char *key) {
    static const char prefix[] = "otelprof.";
    size_t same = 0;
    while (prefix[same] && letter(prefix[same]) == letter(key[same]))
        same++;
    if (!prefix[same])
        return true;
    for (int i = 0; i < SAMPLE_ATTRIBUTES; i++)
        if (same_key(key, profile_attributes[i].key))
            return true;
    return false;
}

/* Returns true for the names under which receivers write a sample's link. Without a link they are
 * ordinary labels. */
static bool is_link_key(const char *key) {
    return same_key(key, trace_key) || same_key(key, span_key);
}

/* Returns the key of a label; NULL without memory, or if the key is invalid or has no name. */
static const char *label_key(struct naming *naming, const struct context_attribute *attribute) {
    if (!attribute->key)
        return naming->names->of[attribute->key_index];
    const char *const key = arena_copy(&naming->merge->arena, attribute->key, attribute->key_bytes);
    return key && strlen(key) == attribute->key_bytes && is_context_key(key) ? key : NULL;
}

/* --- one context --- */

/* Returns the value of a label; NULL without memory. */
static const char *label_value(struct naming *naming, const struct context_attribute *attribute) {
    char *const value = arena_copy(&naming->merge->arena, attribute->value, attribute->value_bytes);
    for (size_t i = 0; value && i < attribute->value_bytes; i++)
        if (!value[i])
            value[i] = '?';
    if (value)
        utf8_make_valid(value);
    return value;
}

/* Adds a label, or replaces the label of the same key. */
static void put_label(struct found *found, const char *key, const char *value) {
    uint32_t at = 0;
    while (at < found->count && !same_key(found->labels[at].key, key))
        at++;
    if (at == CONTEXT_LABELS)
        return;
    found->count += at == found->count;
    found->labels[at] = (struct label){key, value};
}

static const char *hexadecimal(struct naming *naming, const uint8_t *bytes, size_t size) {
    char *const text = arena_take(&naming->merge->arena, 2 * size + 1);
    if (text)
        (void)number_write_bytes(text, bytes, size);
    return text;
}

static void find_labels(struct naming *naming, const struct sample_context *context,
                        struct found *found) {
    const char *const wanted = naming->config->labels;
    const bool linked = context_has_span(context);
    struct context_attribute attribute;
    uint32_t at = 0;
    /* bounds the loop for any data that the program has written there */
    for (int i = 0;
         *wanted && i < CONTEXT_ATTRIBUTES && context_next_attribute(context, &at, &attribute);
         i++) {
        const char *const key = label_key(naming, &attribute);
        if (key && !glob_list_matches(wanted, key))
            continue;
        const bool taken = key && (is_profiler_key(key) || (linked && is_link_key(key)));
        const char *const value = key && !taken ? label_value(naming, &attribute) : NULL;
        if (value)
            put_label(found, key, redact_label(naming->config->redact, key, value));
        else
            found->left_out++;
    }
    /* with a span, labels with these two keys were left out above */
    if (naming->config->link_attributes && linked) {
        const char *const trace = hexadecimal(naming, context->trace_id, TRACE_ID_BYTES);
        const char *const span = hexadecimal(naming, context->span_id, SPAN_ID_BYTES);
        if (trace && span) {
            put_label(found, trace_key, trace);
            put_label(found, span_key, span);
        }
    }
}

static struct exported_context *export_one(struct naming *naming,
                                           const struct sample_context *context, uint32_t number) {
    const struct config *const config = naming->config;
    struct found found = {0};
    find_labels(naming, context, &found);
    /* contexts may then differ in data that is not sent */
    naming->withheld = naming->withheld || found.left_out > 0 || strcmp(config->labels, "*") != 0 ||
                       *config->redact;
    const size_t bytes = found.count * sizeof *found.labels;
    struct exported_context *const exported =
        arena_take_raw(&naming->merge->arena, sizeof *exported + bytes);
    if (!exported)
        return NULL;
    *exported = (struct exported_context){.span = context_has_span(context) ? context : NULL,
                                          .number = number,
                                          .left_out = found.left_out,
                                          .label_count = found.count};
    memcpy(exported->labels, found.labels, bytes);
    return exported;
}

/* --- all contexts --- */

static struct exported_context *exported_of(struct naming *naming,
                                            const struct sample_context *context) {
    struct arena *const arena = &naming->merge->arena;
    bool is_new;
    const int32_t number =
        intern(arena, &naming->seen, context, context_words(context) * 8u, &is_new);
    if (number < 0)
        return NULL;
    if ((size_t)number < naming->named.count)
        return naming->named.items[number];
    /* adds nothing after the first failure, because numbers and contexts do not match any more */
    if (!is_new || (size_t)number != naming->named.count)
        return NULL;
    struct exported_context *const exported = export_one(naming, context, (uint32_t)number);
    return exported && arena_list_add(arena, &naming->named, exported) ? exported : NULL;
}

/* --- contexts that are equal once exported --- */

/* Bounds the identity of one context. A context that needs more is not merged with another. */
enum { IDENTITY_BYTES = 8192 };

struct identity {
    size_t size;
    char bytes[IDENTITY_BYTES];
};

/* Adds bytes; an overflow leaves a size above the limit. */
static void identity_add(struct identity *identity, const void *bytes, size_t size) {
    if (identity->size + size <= IDENTITY_BYTES)
        memcpy(identity->bytes + identity->size, bytes, size);
    identity->size += size;
}

static void make_identity(struct identity *identity, const struct exported_context *context) {
    const uint32_t head[] = {context->label_count, context->span != NULL};
    identity->size = 0;
    identity_add(identity, head, sizeof head);
    if (context->span)
        identity_add(identity, context->span, TRACE_ID_BYTES + SPAN_ID_BYTES);
    for (uint32_t i = 0; i < context->label_count; i++) {
        identity_add(identity, context->labels[i].key, strlen(context->labels[i].key) + 1);
        identity_add(identity, context->labels[i].value, strlen(context->labels[i].value) + 1);
    }
}

struct firsts {
    struct arena arena;
    struct intern index;
    struct arena_list contexts; /* struct exported_context, by the context's number in `index` */
};

/* Returns the first context with the same export; NULL if no part of it is exported. Returns the
 * context itself if its identity is too large or there is no memory. */
static struct exported_context *first_equal_context(struct firsts *firsts,
                                                    struct exported_context *context) {
    struct identity identity;
    bool is_new;
    if (!context || (!context->span && !context->label_count))
        return NULL;
    make_identity(&identity, context);
    if (identity.size > IDENTITY_BYTES || firsts->arena.failed)
        return context;
    const int32_t number =
        intern(&firsts->arena, &firsts->index, identity.bytes, identity.size, &is_new);
    if (number >= 0 && (size_t)number < firsts->contexts.count)
        return firsts->contexts.items[number];
    if (number >= 0)
        (void)arena_list_add(&firsts->arena, &firsts->contexts, context);
    return context;
}

/* Merges samples that differ only in unsent data. */
static void contexts_unite(struct merge *merge) {
    struct firsts firsts = {.contexts = {0}};
    for (size_t i = 0; i < merge->contexts.count; i++)
        merge->contexts.items[i] = first_equal_context(&firsts, merge->contexts.items[i]);
    arena_free(&firsts.arena);
    merge_unite(merge);
}

uint64_t contexts_name(struct merge *merge, const struct key_names *names,
                       const struct config *config) {
    struct naming naming = {.merge = merge, .names = names, .config = config};
    uint64_t left_out = 0;
    bool kept = true; /* the list still has all items up to here */
    for (size_t i = 0; i < merge->items.count; i++) {
        const struct harvest_sample *const sample = merge->items.items[i];
        struct exported_context *const exported =
            sample->context ? exported_of(&naming, sample->context) : NULL;
        kept = kept && arena_list_add(&merge->arena, &merge->contexts, exported);
        if (sample->context)
            left_out += kept && exported ? exported->left_out : 1;
    }
    merge->context_count = naming.named.count;
    if (naming.withheld)
        contexts_unite(merge);
    return left_out;
}

static bool lacks_names(const struct sample_context *context, const struct key_names *names) {
    struct context_attribute attribute;
    uint32_t at = 0;
    while (context_next_attribute(context, &at, &attribute))
        if (!attribute.key && !names->of[attribute.key_index])
            return true;
    return false;
}

bool contexts_lack_names(const struct merge *merge, const struct key_names *names) {
    for (size_t i = 0; i < merge->items.count; i++) {
        const struct harvest_sample *const sample = merge->items.items[i];
        if (sample->context && lacks_names(sample->context, names))
            return true;
    }
    return false;
}

const struct exported_context *context_of_item(const struct merge *merge, size_t item) {
    return item < merge->contexts.count ? merge->contexts.items[item] : NULL;
}

/* --- in the message --- */

size_t context_attributes(const struct exported_context *context, struct otlp_writer *writer,
                          int32_t attributes[static CONTEXT_LABELS]) {
    for (uint32_t i = 0; i < context->label_count; i++)
        attributes[i] =
            otlp_attribute_string(writer, context->labels[i].key, context->labels[i].value);
    return context->label_count;
}

int32_t context_link(const struct exported_context *context, struct otlp_writer *writer) {
    return context->span ? otlp_link(writer, context->span->trace_id, context->span->span_id) : 0;
}
