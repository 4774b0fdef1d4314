/* Fuzzes the context that an application publishes about itself and its threads, and lines of
 * /proc/self/maps.
 *
 * Whatever the bytes: every accepted attribute has a key and a value within bounds, keys are
 * unique, texts are UTF-8; each name of a key is a possible key; a refused message adds nothing,
 * and the same bytes mean the same again. If the bytes are the context of a thread, each entry
 * becomes a label, within bounds and with a unique key, or counts as left out. Input: a line of
 * maps up to a NUL; behind it the message. */
#include "encode/contexts.h"
#include "encode/process_context.h"
#include "fuzz.h"
#include "utf8.h"

static bool is_utf8(const char *text) {
    for (; *text; text += utf8_sequence(text))
        if (!utf8_sequence(text))
            return false;
    return true;
}

static void check_one(const struct attribute_set *set, const struct attribute *attribute) {
    promise(*attribute->key && strlen(attribute->key) <= CONTEXT_KEY_BYTES);
    promise(is_utf8(attribute->key) && is_one_line(attribute->key));
    promise(attributes_find(set, attribute->key) == attribute);
    promise((unsigned)attribute->value.kind <= ATTRIBUTE_BOOL);
    if (attribute->value.kind != ATTRIBUTE_TEXT)
        return;
    const char *const text = attribute->value.text;
    promise(*text && strlen(text) <= CONTEXT_TEXT_BYTES && is_utf8(text));
}

static void check_same(const struct attribute *a, const struct attribute *b) {
    promise(strcmp(a->key, b->key) == 0 && a->value.kind == b->value.kind);
    if (a->value.kind == ATTRIBUTE_TEXT)
        promise(strcmp(a->value.text, b->value.text) == 0);
    else if (a->value.kind == ATTRIBUTE_BOOL)
        promise(a->value.truth == b->value.truth);
    else
        promise(a->value.integer == b->value.integer); /* compares the bits of a double, too */
}

static void check_names(const uint8_t *bytes, size_t size, bool valid) {
    struct key_names names = {{NULL}};
    struct key_names again = {{NULL}};
    context_payload_names(bytes, size, &names);
    context_payload_names(bytes, size, &again);
    for (size_t i = 0; i < KEY_NAMES; i++) {
        const char *const name = names.of[i];
        promise(!name == !again.of[i] && (valid || !name));
        if (name)
            promise(is_context_key(name) && is_utf8(name) && strcmp(name, again.of[i]) == 0);
    }
    key_names_clear(&names);
    key_names_clear(&again);
}

/* --- the context of a thread --- */

static bool is_ours(const char *key) {
    return strcmp(key, "thread.id") == 0 || strcmp(key, "thread_name") == 0 ||
           strncmp(key, "otelprof.", 9) == 0;
}

static uint32_t entries_of(const struct sample_context *context) {
    struct context_attribute attribute;
    uint32_t count = 0;
    for (uint32_t at = 0; context_next_attribute(context, &at, &attribute);)
        count++;
    return count;
}

static void check_exported(const struct exported_context *exported, uint32_t entries,
                           uint64_t left_out, bool ids) {
    const uint32_t own = ids && exported->span ? 2 : 0;
    promise(exported->label_count <= CONTEXT_LABELS && left_out == exported->left_out);
    promise(exported->label_count + left_out <= entries + own);
    for (uint32_t i = 0; i < exported->label_count; i++) {
        const struct label *const label = &exported->labels[i];
        promise(is_context_key(label->key) && is_utf8(label->value));
        promise(strlen(label->value) <= 255 && !is_ours(label->key));
        for (uint32_t k = 0; k < i; k++)
            promise(strcmp(exported->labels[k].key, label->key) != 0);
    }
}

static void check_context(const uint8_t *bytes, size_t size, bool ids) {
    static char first[] = "first";
    static char ours[] = "thread.id";
    const struct key_names names = {.of = {first, ours, [7] = first}};
    const struct config config = {.redact = "*secret*", .labels = "?*", .link_attributes = ids};
    struct sample_context context = {.attribute_bytes = 0};
    static const uint64_t frame = 1;
    struct harvest_sample sample = {
        .context = &context, .thread_name = "", .frames = &frame, .frame_count = 1};
    struct merge merge = {.items = {0}};
    const size_t head = size < 24 ? size : 24;
    memcpy(context.trace_id, bytes, head < TRACE_ID_BYTES ? head : TRACE_ID_BYTES);
    if (head == 24)
        memcpy(context.span_id, bytes + TRACE_ID_BYTES, SPAN_ID_BYTES);
    context.attribute_bytes =
        (uint32_t)(size - head < CONTEXT_ATTRIBUTE_BYTES ? size - head
                                                         : (size_t)CONTEXT_ATTRIBUTE_BYTES);
    memcpy(context.attributes, bytes + head, context.attribute_bytes);
    promise(arena_list_add(&merge.arena, &merge.items, &sample));
    (void)contexts_lack_names(&merge, &names);
    const uint64_t left_out = contexts_name(&merge, &names, &config);
    promise(merge.items.count == 1 && merge.context_count == 1);
    const struct exported_context *const exported = context_of_item(&merge, 0);
    if (exported) /* a part of it is exported */
        check_exported(exported, entries_of(&context), left_out, ids);
    else
        promise(!context_has_span(&context) && left_out <= entries_of(&context));
    merge_free(&merge);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    struct attribute_set set = {.count = 0};
    struct attribute_set again = {.count = 0};
    char *const line = take_text(&input, 0);
    const bool named = strstr(line, "OTEL_CTX") != NULL;
    const struct process_mapping mapping = process_mapping_parse(line);
    promise(named || process_context_mapping(&mapping) == 0);
    free(line);

    uint8_t *const bytes = take_rest(&input, &size);
    const bool valid = context_payload_read(bytes, size, &set);
    promise(valid || set.count == 0);
    promise(set.count <= MAX_ATTRIBUTES);
    promise(context_payload_read(bytes, size, &again) == valid && again.count == set.count);
    for (size_t i = 0; i < set.count; i++) {
        check_one(&set, &set.items[i]);
        check_same(&set.items[i], &again.items[i]);
    }
    check_names(bytes, size, valid);
    check_context(bytes, size, false);
    check_context(bytes, size, true);
    attributes_clear(&set);
    attributes_clear(&again);
    free(bytes);
    return 0;
}
