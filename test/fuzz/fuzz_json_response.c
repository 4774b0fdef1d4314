/* Fuzzes a receiver's response in JSON. Whatever the bytes, the text that is kept is shown as one
 * printable line of UTF-8, and all JSON that is not nested deeper than the reader's bound is
 * accepted. The reason of a refusal, whatever its form, is bounded, and repeats no header. Input:
 * the body. */
#include "export/json_reader.h"
#include "export/receiver_words.h"
#include "export/response.h"
#include "fuzz.h"
#include "shown.h"
#include "strict_json.h"

enum { DEEPEST = 32 };

static bool reader_takes(const char *text, size_t size) {
    struct json_reader reader = {.at = text, .end = text + size};
    const bool skipped = json_skip(&reader);
    promise(reader.at >= text && reader.at <= text + size);
    promise(skipped == !reader.failed);
    return skipped && json_complete(&reader);
}

static void check_string(const char *text, size_t size, size_t room) {
    struct json_reader reader = {.at = text, .end = text + size};
    char *const kept = malloc(room);
    promise(kept);
    kept[0] = 0;
    if (json_string(&reader, kept, room))
        promise(memchr(kept, 0, room));
    free(kept);
}

static void check_refusal(const uint8_t *body, size_t size) {
    static const char *const types[] = {NULL, "application/json", "application/x-protobuf",
                                        "text/html", "text/plain; charset=utf-8"};
    const struct config config = {.headers = "a=bearer%20secret", .endpoint = "http://host/"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char text[256];
        char shown[100];
        response_read_refusal(body, size, types[i], text, sizeof text);
        promise(memchr(text, 0, sizeof text));
        receiver_words(&config, i % 2 ? "" : "what", text, shown, sizeof shown);
        promise(memchr(shown, 0, sizeof shown));
        promise(!strstr(shown, "secret"));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    struct partial_success result;
    struct partial_success again;
    struct partial_success behind;
    uint8_t *const body = take_rest(&input, &size);
    response_read(body, size, true, &result);
    promise(memchr(result.message, 0, sizeof result.message));
    check_shown(result.message);

    const struct strict_json strict = strict_json_look(body, size);
    const bool taken = reader_takes((const char *)body, size);
    promise(taken || !strict.valid || strict.depth > DEEPEST);
    promise(taken || (result.rejected_profiles == 0 && !result.message[0]));
    response_read(body, size, true, &again);
    promise(memcmp(&result, &again, sizeof result) == 0);

    /* one more character makes the body invalid, and no part of it is used */
    uint8_t *const longer = malloc(size + 1);
    promise(longer);
    memcpy(longer, body, size);
    longer[size] = '}';
    response_read(longer, size + 1, true, &behind);
    if (strict.valid)
        promise(behind.rejected_profiles == 0 && !behind.message[0]);
    check_string((const char *)body, size, 1 + size % 9);
    check_refusal(body, size);
    free(longer);
    free(body);
    return 0;
}
