#include "response.h"

#include "json_reader.h"
#include "profiles_service.pb-c.h"
#include "rpc_status.pb-c.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define RESPONSE                                                                                   \
    Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceResponse

bool response_is_json(const char *content_type, bool asked_in_json) {
    static const char json[] = "application/json";
    return content_type ? strncasecmp(content_type, json, sizeof json - 1) == 0 : asked_in_json;
}

/* Copies as much of the text as fits, unescaped: the log escapes it (common/shown_text.h). */
static void keep_text(char *to, size_t room, const char *text) {
    size_t size = strnlen(text, room);
    if (size == room)
        size = utf8_cut(text, room - 1);
    memcpy(to, text, size);
    to[size] = 0;
}

static void read_protobuf(const uint8_t *body, size_t size, struct partial_success *result) {
    RESPONSE *const message =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__unpack(
            NULL, size, body);
    if (!message)
        return;
    if (message->partial_success) {
        result->rejected_profiles = message->partial_success->rejected_profiles;
        keep_text(result->message, sizeof result->message, message->partial_success->error_message);
    }
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__free_unpacked(
        message, NULL);
}

/* Compares a field's name with both forms, because decoders of protobuf's JSON accept the original
 * name as well. */
static bool has_field_name(const char *name, const char *camel_case, const char *snake_case) {
    return strcmp(name, camel_case) == 0 || strcmp(name, snake_case) == 0;
}

static void response_read_partial_success(void *arg, struct json_reader *reader, const char *name) {
    struct partial_success *const result = arg;
    if (has_field_name(name, "rejectedProfiles", "rejected_profiles"))
        (void)json_int64(reader, &result->rejected_profiles);
    else if (has_field_name(name, "errorMessage", "error_message"))
        (void)json_string(reader, result->message, sizeof result->message);
    else
        (void)json_skip(reader);
}

static void response_read_member(void *arg, struct json_reader *reader, const char *name) {
    if (has_field_name(name, "partialSuccess", "partial_success"))
        (void)json_object(reader, response_read_partial_success, arg);
    else
        (void)json_skip(reader);
}

void response_read(const uint8_t *body, size_t size, bool is_json, struct partial_success *result) {
    *result = (struct partial_success){0};
    if (!is_json) {
        read_protobuf(body, size, result);
        return;
    }
    struct json_reader reader = {.at = (const char *)body, .end = (const char *)body + size};
    (void)json_object(&reader, response_read_member, result);
    if (!json_complete(&reader))
        *result = (struct partial_success){0};
}

/* --- a refusal --- */

struct status_text {
    char *text;
    size_t room;
};

static void response_read_status_member(void *arg, struct json_reader *reader, const char *name) {
    const struct status_text *const status = arg;
    if (strcmp(name, "message") == 0)
        (void)json_string(reader, status->text, status->room);
    else
        (void)json_skip(reader);
}

/* Reads the message of a Status in JSON. Returns false if the body is not JSON, or has no
 * message. */
static bool read_json_status(const uint8_t *body, size_t size, char *text, size_t room) {
    struct json_reader reader = {.at = (const char *)body, .end = (const char *)body + size};
    struct status_text status = {text, room};
    (void)json_object(&reader, response_read_status_member, &status);
    return json_complete(&reader) && text[0];
}

static void read_protobuf_status(const uint8_t *body, size_t size, char *text, size_t room) {
    Otelprof__Rpc__RpcStatus *const status = otelprof__rpc__rpc_status__unpack(NULL, size, body);
    if (!status)
        return;
    keep_text(text, room, status->message);
    otelprof__rpc__rpc_status__free_unpacked(status, NULL);
}

static bool is_type(const char *content_type, const char *type) {
    return content_type && strncasecmp(content_type, type, strlen(type)) == 0;
}

void response_read_refusal(const uint8_t *body, size_t size, const char *content_type, char *text,
                           size_t room) {
    text[0] = 0;
    if (is_type(content_type, "text/html"))
        return;
    if (is_type(content_type, "application/x-protobuf") ||
        is_type(content_type, "application/protobuf"))
        read_protobuf_status(body, size, text, room);
    else if (!response_is_json(content_type, false) || !read_json_status(body, size, text, room))
        snprintf(text, room, "%.*s", (int)size, (const char *)body);
}
