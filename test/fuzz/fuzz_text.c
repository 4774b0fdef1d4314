/* Fuzzes lists of key=value pairs, and endpoints.
 *
 * Pairs: a malformed list gives none; the pairs of a good one, encoded again, are read as the same
 * pairs. Endpoints: the result is a URL of http or https, which stays unchanged when it is read
 * again; the room for it decides only whether it fits. Input: a byte of rules, a byte for the room,
 * then the text. */
#include "endpoint.h"
#include "fuzz.h"
#include "keyvalues.h"

/* --- pairs --- */

struct pairs {
    char *text; /* encoded again */
    size_t size;
    size_t count;
};

static void put(struct pairs *pairs, char c) {
    pairs->text[pairs->size++] = c;
}

static void put_encoded(struct pairs *pairs, const char *text) {
    static const char hex[] = "0123456789ABCDEF";
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        put(pairs, '%');
        put(pairs, hex[c >> 4]);
        put(pairs, hex[c & 15]);
    }
}

static void keep_pair(void *arg, const char *key, const char *value) {
    struct pairs *const pairs = arg;
    promise(*key);
    if (pairs->count++)
        put(pairs, ',');
    put_encoded(pairs, key);
    put(pairs, '=');
    put_encoded(pairs, value);
}

/* Reads the pairs of a text, and encodes them again, in three times `size` bytes at most. Returns
 * true if the list is well-formed. The caller frees pairs->text. */
static bool read_pairs(const char *text, size_t size, struct pairs *pairs) {
    char *const scratch = malloc(strlen(text) + 1);
    *pairs = (struct pairs){.text = malloc(3 * size + 1)};
    promise(scratch && pairs->text);
    const bool valid = keyvalues_parse(text, scratch, keep_pair, pairs);
    pairs->text[pairs->size] = 0;
    free(scratch);
    return valid;
}

static void check_pairs(const char *text) {
    struct pairs first;
    struct pairs again;
    const bool valid = read_pairs(text, strlen(text), &first);
    promise(valid || first.count == 0);
    promise(!valid || !strstr(text, "%00"));
    promise(read_pairs(first.text, strlen(text), &again));
    promise(first.count == again.count && strcmp(first.text, again.text) == 0);
    free(first.text);
    free(again.text);
}

/* --- endpoints --- */

static void check_url(const struct endpoint *endpoint, const char *buffer, size_t room) {
    promise(endpoint->size <= room && endpoint->url == buffer);
    promise(strlen(endpoint->url) < endpoint->size);
    promise(strncasecmp(endpoint->url, "http://", 7) == 0 ||
            strncasecmp(endpoint->url, "https://", 8) == 0);
    promise(!strpbrk(endpoint->url, " \t\r\n"));
    if (*endpoint->unix_socket)
        promise(*endpoint->unix_socket == '/' && strlen(endpoint->unix_socket) < 108);
}

static void check_endpoint(const char *text, struct endpoint_rules rules, size_t room) {
    const size_t ample = strlen(text) + 200;
    char *const buffer = malloc(ample);
    char *const tight = malloc(room ? room : 1);
    char *const third = malloc(ample);
    struct endpoint whole;
    struct endpoint bounded;
    struct endpoint again;
    promise(buffer && tight && third);
    const enum endpoint_result result = endpoint_parse(text, rules, buffer, ample, &whole);
    const enum endpoint_result in_room = endpoint_parse(text, rules, tight, room, &bounded);
    promise((result == ENDPOINT_MALFORMED) == (in_room == ENDPOINT_MALFORMED));
    promise(result != ENDPOINT_TOO_LONG || strncmp(text, "unix:/", 6) == 0);
    if (result == ENDPOINT_FITS) {
        check_url(&whole, buffer, ample);
        if (*whole.unix_socket)
            promise((strncmp(whole.url, "https:", 6) == 0) == rules.unix_tls);
        promise((in_room == ENDPOINT_FITS) == (whole.size <= room));
        const struct endpoint_rules as_it_is = {.grpc = rules.grpc, .for_profiles = true};
        promise(endpoint_parse(whole.url, as_it_is, third, ample, &again) == ENDPOINT_FITS);
        promise(strcmp(whole.url, again.url) == 0);
    }
    if (in_room == ENDPOINT_FITS) {
        check_url(&bounded, tight, room);
        promise(strcmp(bounded.url, whole.url) == 0);
        promise(strcmp(bounded.unix_socket, whole.unix_socket) == 0);
    }
    free(buffer);
    free(tight);
    free(third);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    const uint8_t bits = take_byte(&input);
    const size_t room = take_byte(&input);
    char *const text = take_text(&input, 0);
    const struct endpoint_rules rules = {
        .grpc = bits & 1, .insecure = bits & 2, .for_profiles = bits & 4, .unix_tls = bits & 8};
    check_pairs(text);
    if (*text) /* an empty variable is an unset one */
        check_endpoint(text, rules, room);
    free(text);
    return 0;
}
