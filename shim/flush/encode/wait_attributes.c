#include "wait_attributes.h"

#include "function_names.h"
#include "glob.h"
#include "redact.h"
#include "symbolize/module_at.h"

#include <stdio.h>
#include <string.h>

/* Bounds a holder's stack to its innermost functions: a receiver may refuse more in one attribute.
 */
enum { HOLDER_FUNCTIONS = 32 };

/* Lists names, from the array's end, because frames come innermost first. */
struct stack_names {
    char names[HOLDER_FUNCTIONS][FUNCTION_NAME_BYTES];
    const char *listed[HOLDER_FUNCTIONS];
    size_t first;
};

static void add_frame(const struct wait_attributes *waits, const struct wait_detail *wait,
                      unsigned frame, struct stack_names *stack) {
    char functions[MAX_SYMBOL_LINES][FUNCTION_NAME_BYTES];
    const size_t count = function_names(waits->api, waits->symbolizer, wait->holder_frames[frame],
                                        wait->holder_interval, functions);
    for (size_t i = 0; i < count && stack->first > 0; i++) {
        stack->first--;
        memcpy(stack->names[stack->first], functions[i], FUNCTION_NAME_BYTES);
        stack->listed[stack->first] = stack->names[stack->first];
    }
}

static bool same_stack(const struct wait_detail *a, const struct wait_detail *b) {
    return a->holder_frame_count == b->holder_frame_count &&
           a->holder_interval == b->holder_interval &&
           memcmp(a->holder_frames, b->holder_frames,
                  a->holder_frame_count * sizeof *a->holder_frames) == 0;
}

static int32_t holder_stack(struct wait_attributes *waits, const struct wait_detail *wait,
                            const char *key) {
    struct stack_names stack = {.first = HOLDER_FUNCTIONS};
    if (waits->last && same_stack(waits->last, wait))
        return waits->last_stack;
    for (unsigned i = 0; i < wait->holder_frame_count; i++)
        add_frame(waits, wait, i, &stack);
    waits->last = wait;
    waits->last_stack = otlp_attribute_strings(waits->writer, key, stack.listed + stack.first,
                                               HOLDER_FUNCTIONS - stack.first);
    return waits->last_stack;
}

static int32_t text_attribute(struct wait_attributes *waits, const char *key, const char *value) {
    return *value ? otlp_attribute_string(waits->writer, key, value) : 0;
}

static int32_t lock_address(struct wait_attributes *waits, const struct wait_detail *wait,
                            const char *key) {
    char digits[24];
    if (!wait->object)
        return 0;
    snprintf(digits, sizeof digits, "0x%llx", (unsigned long long)wait->object);
    return text_attribute(waits, key, digits);
}

static int32_t lock_name(struct wait_attributes *waits, const struct harvest_sample *sample,
                         const char *key) {
    const char *const redact = waits->api->config->redact;
    const uint64_t address = sample->wait->object;
    char name[FUNCTION_NAME_BYTES];
    struct symbol_line variable;
    const struct harvest_module *modules;
    const size_t count = address ? waits->api->harvest.modules(&modules) : 0;
    const struct harvest_module *const module =
        count ? module_holding(modules, count, address, sample->interval) : NULL;
    if (!module)
        return 0;
    if (symbolizer_variable(waits->symbolizer, module, address, &variable)) {
        redact_line(redact, &variable);
        if (variable.offset)
            snprintf(name, sizeof name, "%.200s+0x%llx", variable.function,
                     (unsigned long long)variable.offset);
        else
            snprintf(name, sizeof name, "%s", variable.function);
    } else {
        /* writes the place in the file, which is the same in each process, unlike an address */
        const char *const file = glob_base_name(redact_path(redact, module->path));
        snprintf(name, sizeof name, file[0] == '[' ? "%.200s+0x%llx" : "[%.200s]+0x%llx", file,
                 (unsigned long long)(address - module->load_bias));
    }
    return text_attribute(waits, key, name);
}

static int32_t holder_name(struct wait_attributes *waits, const struct harvest_sample *sample,
                           const char *key) {
    if (!sample->wait->holder || !sample->holder_name)
        return 0;
    return text_attribute(waits, key, redact_name(waits->api->config->redact, sample->holder_name));
}

int32_t wait_attribute(struct wait_attributes *waits, const struct harvest_sample *sample,
                       enum sample_attribute attribute) {
    static const char *const condition_words[] = {
        [CONDITION_UNKNOWN] = "", [CONDITION_RUNNING] = "running", [CONDITION_BLOCKED] = "blocked"};
    const struct wait_detail *const wait = sample->wait;
    const char *const key = profile_attributes[attribute].key;
    if (!wait)
        return 0;
    switch (attribute) {
    case ATTRIBUTE_WAIT_KIND_INDEX:
        return text_attribute(waits, key, wait_kind_word((enum wait_kind)wait->kind));
    case ATTRIBUTE_LOCK_ADDRESS_INDEX:
        return lock_address(waits, wait, key);
    case ATTRIBUTE_LOCK_NAME_INDEX:
        return lock_name(waits, sample, key);
    case ATTRIBUTE_HOLDER_ID_INDEX:
        return wait->holder ? otlp_attribute_int(waits->writer, key, wait->holder, "") : 0;
    case ATTRIBUTE_HOLDER_NAME_INDEX:
        return holder_name(waits, sample, key);
    case ATTRIBUTE_HOLDER_STACK_INDEX:
        return wait->holder && wait->holder_frame_count ? holder_stack(waits, wait, key) : 0;
    case ATTRIBUTE_THREAD_STATE_INDEX:
        return text_attribute(waits, key, condition_words[wait->condition]);
    case ATTRIBUTE_WAIT_TIME_INDEX:
        return wait->waited_nano
                   ? otlp_attribute_double(waits->writer, key, (double)wait->waited_nano, "ns")
                   : 0;
    default:
        return 0;
    }
}
