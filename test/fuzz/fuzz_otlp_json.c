/* Fuzzes any message as JSON: the output is strict JSON, on one line, and nothing is refused except
 * messages nested deeper than the bound.
 *
 * Input: a byte that chooses the kind of message, then the message in protobuf.
 */
#include "fuzz.h"
#include "otlp_json.h"
#include "profiles.pb-c.h"
#include "profiles_service.pb-c.h"
#include "rpc_status.pb-c.h"
#include "strict_json.h"

enum { DEEPEST = 100 };

static const ProtobufCMessageDescriptor *const kinds[] = {
    &opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__descriptor,
    &opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__descriptor,
    &opentelemetry__proto__resource__v1__resource__descriptor,
    &opentelemetry__proto__common__v1__any_value__descriptor,
    &otelprof__rpc__rpc_status__descriptor,
};

static unsigned depth_of(const ProtobufCMessage *message);

static unsigned depth_of_field(const ProtobufCMessage *message,
                               const ProtobufCFieldDescriptor *field) {
    const char *const base = (const char *)message;
    const void *const place = base + field->offset;
    unsigned deepest = 0;
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return 0;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
        *(const uint32_t *)(const void *)(base + field->quantifier_offset) != field->id)
        return 0;
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        const ProtobufCMessage *const child = *(ProtobufCMessage *const *)place;
        return child ? depth_of(child) : 0;
    }
    const size_t count = *(const size_t *)(const void *)(base + field->quantifier_offset);
    for (size_t i = 0; i < count; i++) {
        const unsigned depth = depth_of((*(ProtobufCMessage *const *const *)place)[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

static unsigned depth_of(const ProtobufCMessage *message) {
    unsigned deepest = 0;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const unsigned depth = depth_of_field(message, &message->descriptor->fields[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

static void check(const ProtobufCMessage *message) {
    size_t size = 0;
    char *const text = otlp_json(message, &size);
    promise((text == NULL) == (depth_of(message) > DEEPEST));
    if (!text)
        return;
    const struct strict_json strict = strict_json_look((const uint8_t *)text, size);
    promise(strict.valid);
    promise(strict.one_line);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    const ProtobufCMessageDescriptor *const kind =
        kinds[take_byte(&input) % (sizeof kinds / sizeof *kinds)];
    ProtobufCMessage *const message = protobuf_c_message_unpack(kind, NULL, input.left, input.at);
    if (!message)
        return 0;
    check(message);
    protobuf_c_message_free_unpacked(message, NULL);
    return 0;
}
