/* Builds messages that an application might publish about itself, with the code that is generated
 * from OpenTelemetry's own message definitions. */
#ifndef OTELPROF_TEST_CONTEXT_MESSAGE_H
#define OTELPROF_TEST_CONTEXT_MESSAGE_H

#include "encode/context_payload.h"
#include "resource.pb-c.h"

typedef Opentelemetry__Proto__Common__V1__AnyValue AnyValue;
typedef Opentelemetry__Proto__Common__V1__KeyValue KeyValue;
typedef Opentelemetry__Proto__Resource__V1__Resource Resource;

struct message {
    uint8_t bytes[CONTEXT_PAYLOAD_BYTES + 64];
    size_t size;
};

static AnyValue text_value(const char *text) {
    AnyValue value = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;
    value.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
    value.string_value = (char *)(uintptr_t)text;
    return value;
}

/* Writes ProcessContext {1: resource}. The length of the resource always takes three bytes. */
static void finish(struct message *message, const uint8_t *resource, size_t size) {
    message->bytes[0] = 0x0a;
    message->bytes[1] = (uint8_t)(size | 0x80);
    message->bytes[2] = (uint8_t)(size >> 7 | 0x80);
    message->bytes[3] = (uint8_t)(size >> 14);
    memcpy(message->bytes + 4, resource, size);
    message->size = size + 4;
}

static struct message *message_of(const char *const *keys, AnyValue *values, size_t count) {
    static struct message message;
    static uint8_t packed[CONTEXT_PAYLOAD_BYTES];
    KeyValue *items[8];
    KeyValue pairs[8];
    Resource resource = OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT;
    for (size_t i = 0; i < count; i++) {
        opentelemetry__proto__common__v1__key_value__init(&pairs[i]);
        pairs[i].key = (char *)(uintptr_t)keys[i];
        pairs[i].value = &values[i];
        items[i] = &pairs[i];
    }
    resource.attributes = items;
    resource.n_attributes = count;
    assert_true(opentelemetry__proto__resource__v1__resource__get_packed_size(&resource) <
                sizeof packed);
    finish(&message, packed, opentelemetry__proto__resource__v1__resource__pack(&resource, packed));
    return &message;
}

static struct message *message_with(const char *key, const char *text) {
    AnyValue value = text_value(text);
    return message_of(&key, &value, 1);
}

/* Appends an attribute of the message itself: ProcessContext {2: attribute}. */
static void append(struct message *message, const char *key, AnyValue *value) {
    KeyValue pair;
    uint8_t *const at = message->bytes + message->size;
    opentelemetry__proto__common__v1__key_value__init(&pair);
    pair.key = (char *)(uintptr_t)key;
    pair.value = value;
    const size_t size = opentelemetry__proto__common__v1__key_value__pack(&pair, at + 4);
    at[0] = 0x12;
    at[1] = (uint8_t)(size | 0x80);
    at[2] = (uint8_t)(size >> 7 | 0x80);
    at[3] = (uint8_t)(size >> 14);
    message->size += 4 + size;
}

/* Builds a message with the schema's name and the names of keys by index. `schema` may be NULL: it
 * is left out. Where a name is NULL, the message has a number. The next call replaces the message.
 */
static struct message *message_of_names(const char *schema, const char *const *names,
                                        size_t count) {
    static struct message message;
    static AnyValue values[300];
    static AnyValue *items[300];
    Opentelemetry__Proto__Common__V1__ArrayValue list =
        OPENTELEMETRY__PROTO__COMMON__V1__ARRAY_VALUE__INIT;
    AnyValue map = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;
    for (size_t i = 0; i < count; i++) {
        values[i] = text_value(names[i]);
        if (!names[i])
            values[i].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
        items[i] = &values[i];
    }
    list.values = items;
    list.n_values = count;
    map.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_ARRAY_VALUE;
    map.array_value = &list;
    message.size = 0;
    if (schema) {
        AnyValue value = text_value(schema);
        append(&message, "threadlocal.schema_version", &value);
    }
    append(&message, "threadlocal.attribute_key_map", &map);
    return &message;
}

static const char *text_in(const struct attribute_set *set, const char *key) {
    const struct attribute *const attribute = attributes_find(set, key);
    return attribute && attribute->value.kind == ATTRIBUTE_TEXT ? attribute->value.text : NULL;
}

static char *long_text(size_t size) {
    char *const text = malloc(size + 1);
    memset(text, 'x', size);
    text[size] = 0;
    return text;
}

#endif
