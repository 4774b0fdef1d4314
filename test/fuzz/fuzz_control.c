/* Fuzzes lines that change settings while the program runs: accepted settings are within the bounds
 * of the variables and of the start, mean the same when they are written again, and every refusal
 * is one line.
 *
 * Input: a byte for the types of the start, then the text.
 */
#include "control/settable.h"
#include "fuzz.h"

enum { DEPTH = 200 };

static void heed(void *arg, unsigned line, const char *what) {
    unsigned *const last = arg;
    promise(line > *last);
    *last = line;
    promise(is_one_line(what));
    promise(strlen(what) < 512);
}

static void check_bounds(const struct settable_values *values, const struct config *config) {
    promise(values->start == START_ON || values->start == START_OFF);
    promise((values->types & ~config->types) == 0);
    promise(values->cpu_frequency >= 1 && values->cpu_frequency <= 4000);
    promise(values->wait_frequency >= 1 && values->wait_frequency <= 4000);
    promise(values->alloc_interval >= 1 && values->lock_interval >= 1);
    promise(values->max_stack_depth >= 1 && values->max_stack_depth <= DEPTH);
    promise(values->log_level <= LOG_DEBUG);
}

static void check_again(const struct overlay *overlay, const struct config *config) {
    char text[64 + SETTABLE_VALUE_BYTES];
    char value[SETTABLE_VALUE_BYTES];
    for (enum settable i = 0; i < SETTABLES; i++) {
        struct overlay again = {.has = 0};
        unsigned last = 0;
        if (!(overlay->has & (1u << i)))
            continue;
        settable_write(&overlay->values, i, value);
        const int size = snprintf(text, sizeof text, "%s=%s", settable_name(i), value);
        overlay_read(&again, text, (size_t)size, config, heed, &last);
        promise(last == 0 && again.has == 1u << i);
        settable_write(&again.values, i, text);
        promise(strcmp(text, value) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    const struct config config = {.types = take_byte(&input) | PROFILE_CPU,
                                  .cpu_frequency = 99,
                                  .alloc_interval = 4096,
                                  .wait_frequency = 49,
                                  .lock_interval = 10000,
                                  .max_stack_depth = DEPTH,
                                  .log_level = LOG_INFO};
    const size_t length = input.left;
    char *const text = malloc(length ? length : 1); /* without a 0 behind it */
    struct overlay overlay = {.has = 0};
    const struct overlay *const overlays[] = {&overlay};
    unsigned last = 0;
    promise(text);
    if (length)
        memcpy(text, input.at, length);
    overlay_read(&overlay, text, length, &config, heed, &last);
    struct settable_values values = settable_configured(&config);
    overlay_lay(&values, &overlay);
    check_bounds(&values, &config);
    check_again(&overlay, &config);
    values = settable_configured(&config);
    overlay_refine(&values, overlays, 1);
    check_bounds(&values, &config);
    promise(values.cpu_frequency >= config.cpu_frequency && values.types == config.types);
    free(text);
    return 0;
}
