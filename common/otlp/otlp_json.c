#include "otlp_json.h"

#include "text_numbers.h"
#include "written_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 << 10, MAX_DEPTH = 100 };

static void put_char(struct wire *text, char c) {
    wire_raw(text, &c, 1);
}

static void put_word(struct wire *text, const char *word) {
    wire_raw(text, word, strlen(word));
}

/* Writes snake_case as lowerCamelCase. */
static void put_name(struct wire *text, const char *name) {
    put_char(text, '"');
    for (; *name; name++) {
        const bool upper = name[0] == '_' && name[1] >= 'a' && name[1] <= 'z';
        put_char(text, upper ? (char)(*++name - 'a' + 'A') : *name);
    }
    put_word(text, "\":");
}

/* --- bytes --- */

static void put_hex(struct wire *text, const ProtobufCBinaryData *data) {
    if (!wire_reserve(text, 2 * data->len + 1))
        return;
    (void)number_write_bytes((char *)text->bytes + text->size, data->data, data->len);
    text->size += 2 * data->len;
}

/* Writes base64 as RFC 4648, section 4, defines it: three bytes become four characters, padded. */
static void put_base64(struct wire *text, const ProtobufCBinaryData *data) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < data->len; i += 3) {
        const size_t left = data->len - i;
        const uint32_t group = (uint32_t)data->data[i] << 16 |
                               (left > 1 ? (uint32_t)data->data[i + 1] << 8 : 0) |
                               (left > 2 ? data->data[i + 2] : 0);
        put_char(text, digits[group >> 18]);
        put_char(text, digits[group >> 12 & 63]);
        put_char(text, left > 1 ? digits[group >> 6 & 63] : '=');
        put_char(text, left > 2 ? digits[group & 63] : '=');
    }
}

static bool is_id(const char *name) {
    static const char *const ids[] = {"trace_id", "span_id", "profile_id"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (strcmp(name, ids[i]) == 0)
            return true;
    return false;
}

/* --- numbers --- */

static void put_unsigned(struct wire *text, uint64_t value) {
    char digits[NUMBER_BYTES];
    const char *const end = number_write(digits, 10, value);
    wire_raw(text, digits, (size_t)(end - digits));
}

static void put_signed(struct wire *text, int64_t value) {
    if (value < 0)
        put_char(text, '-');
    put_unsigned(text, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* Writes as many digits, from 15 on, as are needed to read back the same value. Replaces the
 * decimal point of the application's locale, which may have several bytes. */
static void put_double(struct wire *text, double value) {
    char digits[64];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    const char *at = digits;
    while (*at) {
        const size_t usual = strspn(at, "0123456789+-e");
        wire_raw(text, at, usual);
        at += usual;
        if (*at)
            put_char(text, '.');
        at += strcspn(at, "0123456789+-e");
    }
}

static void put_real(struct wire *text, double value) {
    if (isnan(value))
        put_word(text, "\"NaN\"");
    else if (isinf(value))
        put_word(text, value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    else if (value == 0 && signbit(value))
        /* writes a fraction, because some readers parse "-0" as an integer, which has no sign */
        put_word(text, "-0.0");
    else
        put_double(text, value);
}

/* --- one value, by its field's type --- */

static void put_message(struct wire *text, unsigned depth, const ProtobufCMessage *message);

static int32_t read_32(const void *value) {
    int32_t number;
    memcpy(&number, value, sizeof number);
    return number;
}

static int64_t read_64(const void *value) {
    int64_t number;
    memcpy(&number, value, sizeof number);
    return number;
}

static double read_real(const void *value, ProtobufCType type) {
    float single;
    double number;
    if (type == PROTOBUF_C_TYPE_FLOAT) {
        memcpy(&single, value, sizeof single);
        return single;
    }
    memcpy(&number, value, sizeof number);
    return number;
}

static const void *read_pointer(const void *value) {
    const void *pointer;
    memcpy(&pointer, value, sizeof pointer);
    return pointer;
}

static void put_quoted_64(struct wire *text, const void *value, bool is_signed) {
    put_char(text, '"');
    if (is_signed)
        put_signed(text, read_64(value));
    else
        put_unsigned(text, (uint64_t)read_64(value));
    put_char(text, '"');
}

static void put_value(struct wire *text, unsigned depth, const ProtobufCFieldDescriptor *field,
                      const void *value) {
    const char *string;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_ENUM:
        put_signed(text, read_32(value));
        return;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        put_unsigned(text, (uint32_t)read_32(value));
        return;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        put_quoted_64(text, value, true);
        return;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        put_quoted_64(text, value, false);
        return;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        put_real(text, read_real(value, field->type));
        return;
    case PROTOBUF_C_TYPE_BOOL:
        put_word(text, *(const protobuf_c_boolean *)value ? "true" : "false");
        return;
    case PROTOBUF_C_TYPE_STRING:
        string = read_pointer(value);
        text_add_json(text, string ? string : "");
        return;
    case PROTOBUF_C_TYPE_BYTES:
        put_char(text, '"');
        if (is_id(field->name))
            put_hex(text, value);
        else
            put_base64(text, value);
        put_char(text, '"');
        return;
    case PROTOBUF_C_TYPE_MESSAGE:
        put_message(text, depth, read_pointer(value));
        return;
    }
}

static size_t size_of(ProtobufCType type) {
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

/* --- a message's fields --- */

/* Returns whether a field that is no list must be written. A proto3 field without presence is left
 * out if it has the same bits as the default, so -0.0 is written. */
static bool is_present(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    static const char zeros[8];
    const char *const base = (const char *)message;
    const void *const value = base + field->offset;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return (uint32_t)read_32(base + field->quantifier_offset) == field->id;
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return read_pointer(value) != NULL;
    case PROTOBUF_C_TYPE_STRING:
        return read_pointer(value) && *(const char *)read_pointer(value);
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)value)->len > 0;
    default:
        return memcmp(value, zeros, size_of(field->type)) != 0;
    }
}

static size_t count_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    size_t count;
    memcpy(&count, (const char *)message + field->quantifier_offset, sizeof count);
    return count;
}

static void put_list(struct wire *text, unsigned depth, const ProtobufCMessage *message,
                     const ProtobufCFieldDescriptor *field) {
    const size_t count = count_of(message, field);
    const char *const items = read_pointer((const char *)message + field->offset);
    put_char(text, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            put_char(text, ',');
        put_value(text, depth, field, items + i * size_of(field->type));
    }
    put_char(text, ']');
}

static void put_message(struct wire *text, unsigned depth, const ProtobufCMessage *message) {
    const char *separator = "";
    if (text->failed || depth == MAX_DEPTH) {
        text->failed = true;
        return;
    }
    put_char(text, '{');
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &message->descriptor->fields[i];
        const bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
        if (is_list ? !count_of(message, field) : !is_present(message, field))
            continue;
        put_word(text, separator);
        put_name(text, field->name);
        if (is_list)
            put_list(text, depth + 1, message, field);
        else
            put_value(text, depth + 1, field, (const char *)message + field->offset);
        separator = ",";
    }
    put_char(text, '}');
}

char *otlp_json(const ProtobufCMessage *message, size_t *size) {
    struct wire text = {.size = 0};
    (void)wire_reserve(&text, FIRST_CAPACITY);
    put_message(&text, 0, message);
    return (char *)wire_take(&text, size);
}
