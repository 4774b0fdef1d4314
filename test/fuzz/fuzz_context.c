/* What an application publishes about itself, and lines of /proc/self/maps.
 *
 * Whatever the bytes: every attribute that is taken has a key and a value within bounds, keys are
 * unique, texts are UTF-8; a message that is refused adds nothing, and the same bytes mean the same
 * again. Input: a line of maps up to a NUL; behind it the message.
 */
#include "encode/context_payload.h"
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
        promise(a->value.integer == b->value.integer); /* the bits of a double, too */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    struct attribute_set set = {.count = 0};
    struct attribute_set again = {.count = 0};
    char *const line = take_text(&input, 0);
    const bool named = strstr(line, "OTEL_CTX") != NULL;
    promise(named || process_context_mapping(line) == 0);
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
    attributes_clear(&set);
    attributes_clear(&again);
    free(bytes);
    return 0;
}
