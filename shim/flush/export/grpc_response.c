#include "grpc_response.h"

#include "rpc_status.pb-c.h"
#include "text_numbers.h"
#include "utf8.h"

#include <string.h>
#include <strings.h>

enum { MAX_DETAILS_BYTES = 6 << 10 }; /* 8 KiB of base64, servers' usual limit for headers */

static const int64_t longest_seconds = 315576000000; /* limit of a Duration: 10,000 years */

/* --- grpc-message --- */

/* Returns the decoded byte at `*at`, and advances `*at` past it. An invalid escape stands for
 * itself. */
static char grpc_next_byte(const char **at, const char *end) {
    const char first = *(*at)++;
    if (first != '%' || end - *at < 2)
        return first;
    const unsigned high = number_digit((*at)[0]);
    const unsigned low = number_digit((*at)[1]);
    if (high == NO_DIGIT || low == NO_DIGIT)
        return first;
    *at += 2;
    return (char)(high * 16 + low);
}

static void decode_message(char *to, size_t room, const char *text, size_t size) {
    const char *const end = text + size;
    size_t length = 0;
    while (text < end && length + 1 < room) {
        const char byte = grpc_next_byte(&text, end);
        to[length++] = byte ? byte : '?'; /* a NUL would end the text */
    }
    to[length] = 0;
}

/* --- grpc-status --- */

static enum grpc_code decode_code(const char *text, size_t size) {
    unsigned code = 0;
    if (size < 1 || size > 2)
        return GRPC_UNKNOWN;
    for (size_t i = 0; i < size; i++) {
        const unsigned digit = number_digit(text[i]);
        if (digit >= 10)
            return GRPC_UNKNOWN;
        code = code * 10 + digit;
    }
    return code < GRPC_CODE_COUNT ? (enum grpc_code)code : GRPC_UNKNOWN;
}

/* --- grpc-status-details-bin --- */

/* Accepts padded and unpadded text, as gRPC does. Returns false if it is not base64 or too long. */
static bool decode_base64(const char *text, size_t size, uint8_t *to, size_t room, size_t *length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    const size_t most_padding = size % 4 == 0 && size ? 2 : 0;
    for (size_t i = 0; i < most_padding && text[size - 1] == '='; i++)
        size--;
    if (size % 4 == 1 || size / 4 * 3 + 3 > room)
        return false;
    *length = 0;
    for (size_t i = 0; i < size; i++) {
        const char *const digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return false;
        bits = bits << 6 | (uint32_t)(digit - digits);
        if (i % 4)
            to[(*length)++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    return true;
}

/* Reads a delay; no delay (NULL) is read as 0. Returns false if the delay is invalid. */
static bool read_delay(const Otelprof__Rpc__RetryDelay *delay, uint64_t *nano) {
    *nano = 0;
    if (!delay)
        return true;
    if (delay->seconds < 0 || delay->seconds > longest_seconds || delay->nanos < 0 ||
        delay->nanos > 999999999)
        return false;
    const uint64_t seconds = (uint64_t)delay->seconds;
    *nano = seconds > UINT64_MAX / 1000000000 - 1 ? UINT64_MAX
                                                  : seconds * 1000000000 + (uint64_t)delay->nanos;
    return true;
}

static bool read_retry_info(const Otelprof__Rpc__RpcDetail *detail, uint64_t *nano) {
    const char *const type = strrchr(detail->type_url, '/'); /* after the host's name */
    if (!type || strcmp(type, "/google.rpc.RetryInfo") != 0)
        return false;
    Otelprof__Rpc__RetryInfo *const info =
        otelprof__rpc__retry_info__unpack(NULL, detail->value.len, detail->value.data);
    const bool valid = info && read_delay(info->retry_delay, nano);
    if (info)
        otelprof__rpc__retry_info__free_unpacked(info, NULL);
    return valid;
}

static void read_details(struct grpc_response *response, const char *text, size_t size) {
    uint8_t bytes[MAX_DETAILS_BYTES];
    size_t length;
    if (!decode_base64(text, size, bytes, sizeof bytes, &length))
        return;
    Otelprof__Rpc__RpcStatus *const status = otelprof__rpc__rpc_status__unpack(NULL, length, bytes);
    if (!status)
        return;
    for (size_t i = 0; i < status->n_details && !response->has_retry_info; i++)
        response->has_retry_info = read_retry_info(status->details[i], &response->retry_delay_nano);
    otelprof__rpc__rpc_status__free_unpacked(status, NULL);
}

/* --- a line --- */

/* Returns the value of header `name` in `line`, without surrounding blanks; NULL if the line has
 * another header. */
static const char *header_value(const char *line, size_t size, const char *name,
                                size_t *value_size) {
    const size_t length = strlen(name);
    if (size <= length || line[length] != ':' || strncasecmp(line, name, length) != 0)
        return NULL;
    const char *value = line + length + 1;
    const char *const end = line + size;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    *value_size = (size_t)(end - value);
    while (*value_size && (value[*value_size - 1] == ' ' || value[*value_size - 1] == '\t'))
        (*value_size)--;
    return value;
}

void grpc_response_take_line(struct grpc_response *response, const char *line, size_t size) {
    const char *value;
    size_t length;
    while (size && (line[size - 1] == '\n' || line[size - 1] == '\r'))
        size--;
    if (size == 0) {
        response->complete = response->has_status;
    } else if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        /* the status follows the first blank: "HTTP/2 103" */
        const char *const blank = memchr(line, ' ', size);
        const bool informational = blank && blank + 1 < line + size && blank[1] == '1';
        *response = (struct grpc_response){.code = GRPC_UNKNOWN, .informational = informational};
    } else if (response->informational) {
        return;
    } else if ((value = header_value(line, size, "grpc-status", &length))) {
        response->has_status = true;
        response->code = decode_code(value, length);
    } else if ((value = header_value(line, size, "grpc-message", &length))) {
        decode_message(response->message, sizeof response->message, value, length);
    } else if ((value = header_value(line, size, "grpc-status-details-bin", &length))) {
        read_details(response, value, length);
    }
}
