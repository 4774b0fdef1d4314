/* Fuzzes the end of a gRPC call: its headers line by line, its message, and the protobuf response
 * in that.
 *
 * What is kept of headers is bounded, and shown as one line. An unwrapped message is within the
 * body. A response means the same in protobuf and, written by our writer, in JSON. Input: lines,
 * each ended by a line feed, up to a NUL; behind it the body.
 */
#include "encode/compress.h"
#include "export/grpc_response.h"
#include "export/response.h"
#include "fuzz.h"
#include "otlp_json.h"
#include "profiles_service.pb-c.h"
#include "shown.h"
#include "utf8.h"

#define ANSWER                                                                                     \
    Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceResponse
#define ANSWER_UNPACK                                                                              \
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__unpack
#define ANSWER_FREE                                                                                \
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__free_unpacked

static bool is_utf8(const char *text) {
    for (; *text; text += utf8_sequence(text))
        if (!utf8_sequence(text))
            return false;
    return true;
}

/* --- headers --- */

static void check_headers(const struct grpc_response *response) {
    promise((unsigned)response->code < GRPC_CODE_COUNT);
    promise(response->has_status || response->code == GRPC_UNKNOWN);
    promise(response->has_status || !response->complete);
    promise(!response->informational || !response->has_status);
    promise(memchr(response->message, 0, sizeof response->message));
    check_shown(response->message);
    promise(response->has_retry_info || response->retry_delay_nano == 0);
    promise(*grpc_code_name(response->code));
}

static void take_lines(char *lines) {
    struct grpc_response response = {.code = GRPC_UNKNOWN};
    for (char *at = lines; *at;) {
        const size_t size = strcspn(at, "\n") + (strchr(at, '\n') != NULL);
        char *const line = malloc(size ? size : 1);
        promise(line);
        memcpy(line, at, size);
        grpc_response_take_line(&response, line, size);
        check_headers(&response);
        free(line);
        at += size;
    }
}

/* --- the message --- */

/* Reads the protobuf response from its JSON, into *result. Returns true if there is such a
 * response, and its text is one that both forms keep whole; *result is unset if there is none. */
static bool as_json(const uint8_t *message, size_t size, struct partial_success *result) {
    ANSWER *const response = ANSWER_UNPACK(NULL, size, message);
    if (!response)
        return false;
    size_t length = 0;
    const char *const text =
        response->partial_success ? response->partial_success->error_message : "";
    const bool comparable = is_utf8(text) && strlen(text) < sizeof result->message;
    char *const json = otlp_json(&response->base, &length);
    promise(json);
    response_read((const uint8_t *)json, length, true, result);
    free(json);
    ANSWER_FREE(response, NULL);
    return comparable;
}

static void check_response(const uint8_t *message, size_t size) {
    struct partial_success binary;
    struct partial_success text;
    response_read(message, size, false, &binary);
    promise(memchr(binary.message, 0, sizeof binary.message));
    check_shown(binary.message);
    if (!as_json(message, size, &text))
        return;
    promise(binary.rejected_profiles == text.rejected_profiles);
    promise(strcmp(binary.message, text.message) == 0);
}

static void check_wrapping(const uint8_t *message, size_t size) {
    uint8_t *wrapped = malloc(size ? size : 1);
    size_t wrapped_size = size;
    size_t length = 0;
    bool compressed = true;
    promise(wrapped);
    memcpy(wrapped, message, size);
    promise(grpc_wrap(&wrapped, &wrapped_size, false));
    const uint8_t *const again = grpc_unwrap(wrapped, wrapped_size, &length, &compressed);
    promise(again && !compressed && length == size && memcmp(again, message, size) == 0);
    promise(!grpc_unwrap(wrapped, wrapped_size - 1, &length, &compressed));
    free(wrapped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    char *const lines = take_text(&input, 0);
    take_lines(lines);
    free(lines);

    uint8_t *const body = take_rest(&input, &size);
    size_t length = 0;
    bool compressed;
    const uint8_t *const message = grpc_unwrap(body, size, &length, &compressed);
    if (message) {
        uint8_t unpacked[4096];
        if (compressed)
            promise(decompress(message, length, unpacked, sizeof unpacked) <= sizeof unpacked);
        promise(message >= body && message <= body + size);
        promise(length <= (size_t)(body + size - message));
        check_response(message, length);
    }
    check_response(body, size);
    check_wrapping(body, size);
    free(body);
    return 0;
}
