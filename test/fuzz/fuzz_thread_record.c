/* Fuzzes a thread's record (OTEP 4947), and labels of the custom-labels libraries, as a program may
 * leave them: any bytes, at the very end of readable memory.
 *
 * Whatever they are: nothing behind them is read; the accepted part is within bounds and has each
 * key once; the same bytes mean the same again. Input: a byte, whose lowest bit chooses one of the
 * two; behind it the record, or the labels: their count, then for each the lengths of key and
 * value, and their bytes, of which a length of 255 leads nowhere.
 */
#include "context/custom_labels.h"
#include "context/thread_context.h"
#include "fuzz.h"

#include <sys/mman.h>

enum { PAGES = 4, PAGE = 4096, BYTES = PAGES * PAGE, MOST_LABELS = 80, NOWHERE = 255 };

struct words {
    uint64_t size;
    const void *bytes;
};

struct label {
    struct words key;
    struct words value;
};

struct label_set {
    const struct label *labels;
    uint64_t count;
    uint64_t capacity;
};

/* Returns the end of readable pages: the page after them cannot be read. */
static uint8_t *edge(void) {
    static uint8_t *end;
    if (end)
        return end;
    uint8_t *const pages =
        mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    promise(pages != MAP_FAILED && mprotect(pages + BYTES, PAGE, PROT_NONE) == 0);
    end = pages + BYTES;
    return end;
}

typedef enum context_outcome reader(uintptr_t variable, struct foreign_memory *memory,
                                    struct sample_context *context);

static bool is_same_key(const struct context_attribute *a, const struct context_attribute *b) {
    if (!a->key || !b->key)
        return !a->key && !b->key && a->key_index == b->key_index;
    return a->key_bytes == b->key_bytes && memcmp(a->key, b->key, a->key_bytes) == 0;
}

static void check_key(const struct sample_context *context, uint32_t end,
                      const struct context_attribute *attribute) {
    struct context_attribute other;
    uint32_t at = 0;
    while (at < end && context_next_attribute(context, &at, &other) && at < end)
        promise(!is_same_key(&other, attribute));
}

static void check(const struct sample_context *context) {
    struct context_attribute attribute;
    uint32_t at = 0;
    uint32_t count = 0;
    promise(context->reserved == 0 && context->attribute_bytes <= CONTEXT_ATTRIBUTE_BYTES);
    while (context_next_attribute(context, &at, &attribute)) {
        count++;
        check_key(context, at, &attribute);
    }
    promise(at == context->attribute_bytes && count <= CONTEXT_ATTRIBUTES);
    promise(count || context_has_span(context));
    for (; at < context_words(context) * 8 - offsetof(struct sample_context, attributes); at++)
        promise(context->attributes[at] == 0);
}

/* Reads the object twice, each time into memory with other contents: both results must be equal. */
static void read_it(reader *read, const void *object) {
    static struct sample_context contexts[2];
    enum context_outcome outcomes[2];
    const uintptr_t pointer = (uintptr_t)object;
    for (int i = 0; i < 2; i++) {
        static uint8_t room[FOREIGN_COPY_BYTES];
        struct foreign_memory memory = {.room = room};
        memset(&contexts[i], i ? 0xff : 0x5a, sizeof contexts[i]);
        outcomes[i] = read((uintptr_t)&pointer, &memory, &contexts[i]);
    }
    promise(outcomes[0] == outcomes[1]);
    if (outcomes[0] != CONTEXT_READ && outcomes[0] != CONTEXT_CUT)
        return;
    check(&contexts[0]);
    promise(memcmp(&contexts[0], &contexts[1], context_words(&contexts[0]) * 8) == 0);
}

static struct words take_words(struct input *input, size_t size) {
    const size_t taken = size < input->left ? size : input->left;
    uint8_t *const bytes = edge() - taken;
    if (size == NOWHERE)
        return (struct words){size, edge()};
    memmove(bytes, input->at, taken);
    input->at += taken;
    input->left -= taken;
    return (struct words){taken, taken ? bytes : NULL};
}

static void read_labels(struct input *input) {
    static struct label labels[MOST_LABELS];
    const uint64_t count = take_byte(input) % (MOST_LABELS + 1);
    for (uint64_t i = 0; i < count; i++) {
        const size_t key = take_byte(input);
        const size_t value = take_byte(input);
        labels[i] = (struct label){take_words(input, key), take_words(input, value)};
    }
    read_it(custom_labels_read, &(struct label_set){labels, count, count});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    if (take_byte(&input) & 1) {
        read_labels(&input);
    } else if (input.left <= BYTES) {
        uint8_t *const record = edge() - input.left;
        memcpy(record, input.at, input.left);
        read_it(thread_context_read, record);
    }
    return 0;
}
