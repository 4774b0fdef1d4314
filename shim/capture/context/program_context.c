#include "program_context.h"

#include "arch_memory.h"
#include "kernel/profiler_memory.h"

#include <stdatomic.h>

/* Identifies struct program_content, version 1. Another release may use another layout and
 * value. */
enum { OWN_FORM = 0x07e10001 };

/* Bounds the labels that may be pushed and not popped: a label's state needs two more values. */
#define MOST_DEPTH (UINT32_MAX - 2)

enum { SEGMENTS = 1024, PER_SEGMENT = 64, PAGE = ARCH_LARGEST_PAGE_BYTES };
enum { SEGMENT_BYTES = (sizeof(struct program_context) * PER_SEGMENT + PAGE - 1) / PAGE * PAGE };

/* Keeps a writer's stores in order, for handlers that interrupt it and for the helper, which reads
 * a blocked thread's context: pairs with the fence in program_context_copy(). No instruction on
 * x86-64, which keeps stores in order by itself. */
static void keep_stores_in_order(void) {
    atomic_signal_fence(memory_order_seq_cst);
    atomic_thread_fence(memory_order_release);
}

static uint64_t program_context_load(const uint64_t *word) {
    return *(const volatile uint64_t *)word;
}

static const struct program_content *content_of(const struct program_context *programs) {
    return &programs->contents[atomic_load_explicit(&programs->current, memory_order_relaxed) & 1];
}

static struct program_content *content_to_change(struct program_context *programs) {
    return &programs->contents[atomic_load_explicit(&programs->current, memory_order_relaxed) & 1];
}

/* --- the span --- */

static uint64_t turned(uint64_t word, unsigned by) {
    return word << by | word >> (64 - by);
}

/* Returns a check word of a span: any change of a single word changes it, and three zeros give
 * 0. */
static uint64_t span_check(const uint64_t span[3]) {
    return span[0] ^ turned(span[1], 21) ^ turned(span[2], 42);
}

static bool program_context_is_there(const struct program_content *content, const uint64_t span[3],
                                     uint64_t check) {
    return program_context_load(&content->span[0]) == span[0] &&
           program_context_load(&content->span[1]) == span[1] &&
           program_context_load(&content->span[2]) == span[2] &&
           program_context_load(&content->check) == check;
}

void program_context_set_span(struct program_context *programs, const uint8_t *trace_id,
                              const uint8_t *span_id) {
    struct program_content *const content = content_to_change(programs);
    uint64_t span[3] = {0};
    if (trace_id && span_id) {
        memcpy(span, trace_id, TRACE_ID_BYTES);
        memcpy(span + 2, span_id, SPAN_ID_BYTES);
    }
    const uint64_t check = span_check(span);
    do { /* repeats only if a handler of the program's has set another span in between */
        keep_stores_in_order();
        for (int i = 0; i < 3; i++)
            content->span[i] = span[i];
        content->check = check;
        keep_stores_in_order();
    } while (!program_context_is_there(content, span, check));
}

/* Never returns a mixture of two spans, because a caller that restored it would make the mixture
 * valid. */
void program_context_get_span(const struct program_context *programs, uint8_t *trace_id,
                              uint8_t *span_id) {
    static const uint64_t none[3];
    const struct program_content *const content = content_of(programs);
    const uint64_t *const span = span_check(content->span) == content->check ? content->span : none;
    memcpy(trace_id, span, TRACE_ID_BYTES);
    memcpy(span_id, span + 2, SPAN_ID_BYTES);
}

/* --- labels --- */

static uint32_t depth_in(uint64_t top) {
    return (uint32_t)(top >> 32);
}

static uint32_t count_in(uint64_t top) {
    return (uint16_t)(top >> 16);
}

static uint32_t bytes_in(uint64_t top) {
    return (uint16_t)top;
}

static uint64_t top_of(uint32_t depth, uint32_t count, uint32_t bytes) {
    return (uint64_t)depth << 32 | (uint64_t)count << 16 | bytes;
}

/* Describes a text of the program's; `size` is PROGRAM_TEXT_BYTES + 1 if the text is too long or
 * missing. */
struct text {
    const char *bytes;
    uint32_t size;
};

static struct text text_of(const char *text) {
    enum { TOO_LONG = PROGRAM_TEXT_BYTES + 1 };
    return (struct text){text, text ? (uint32_t)strnlen(text, TOO_LONG) : TOO_LONG};
}

static bool has_key(const struct program_content *content, const struct program_label *label,
                    const struct text *key) {
    const uint8_t *const entry = content->bytes + label->start;
    return entry[0] == key->size && memcmp(entry + 2, key->bytes, key->size) == 0;
}

/* Hides older labels of the same key as the label at depth `depth`. */
static void hide_labels_of_key(struct program_content *content, uint32_t count,
                               const struct text *key, uint32_t depth) {
    for (uint32_t i = 0; i < count; i++)
        if (content->labels[i].state == 1 && has_key(content, &content->labels[i], key))
            content->labels[i].state = depth + 1;
}

/* Adds a label. Writes stay within the context's bounds, whatever a handler of the program does
 * meanwhile. */
static void add_label(struct program_content *content, uint64_t top, const struct text *key,
                      const struct text *value, uint32_t size) {
    struct program_label *const label = &content->labels[count_in(top)];
    const uint32_t start = bytes_in(top);
    content->top = top_of(depth_in(top) + 1, count_in(top) + 1, start + size);
    keep_stores_in_order(); /* from here on, a handler of the program's pushes above this label */
    *label = (struct program_label){(uint16_t)start, (uint16_t)size, depth_in(top) + 1, 0};
    hide_labels_of_key(content, count_in(top), key, depth_in(top) + 1);
    uint8_t *const entry = content->bytes + start;
    entry[0] = (uint8_t)key->size;
    entry[1] = (uint8_t)value->size;
    memcpy(entry + 2, key->bytes, key->size);
    memcpy(entry + 2 + key->size, value->bytes, value->size);
    keep_stores_in_order();
    label->state = 1;
    keep_stores_in_order();
}

/* Counts a label that does not fit. It still hides older labels of its key, because the thread has
 * replaced their values. */
static void count_label(struct program_content *content, uint64_t top, const struct text *key) {
    content->top = top_of(depth_in(top) + 1, count_in(top), bytes_in(top));
    keep_stores_in_order();
    if (key->size <= PROGRAM_TEXT_BYTES)
        hide_labels_of_key(content, count_in(top), key, depth_in(top) + 1);
    keep_stores_in_order();
}

uint32_t program_context_push(struct program_context *programs, const char *key_text,
                              const char *value_text) {
    struct program_content *const content = content_to_change(programs);
    const uint64_t top = program_context_load(&content->top);
    const struct text key = text_of(key_text);
    const struct text value = text_of(value_text);
    const uint32_t size = 2 + key.size + value.size;
    if (depth_in(top) == MOST_DEPTH)
        return MOST_DEPTH;
    if (key.size > 0 && key.size <= PROGRAM_TEXT_BYTES && value.size <= PROGRAM_TEXT_BYTES &&
        count_in(top) < PROGRAM_LABELS && bytes_in(top) + size <= PROGRAM_LABEL_BYTES)
        add_label(content, top, &key, &value, size);
    else
        count_label(content, top, &key);
    return depth_in(top);
}

void program_context_pop_to(struct program_context *programs, uint32_t depth) {
    struct program_content *const content = content_to_change(programs);
    const uint64_t top = program_context_load(&content->top);
    uint32_t count = count_in(top);
    if (depth_in(top) <= depth)
        return;
    for (; count > 0 && content->labels[count - 1].depth > depth; count--)
        content->labels[count - 1].state = 0;
    const struct program_label *const last = count ? &content->labels[count - 1] : NULL;
    keep_stores_in_order();
    content->top = top_of(depth, count, last ? (uint32_t)last->start + last->size : 0);
    keep_stores_in_order();
    for (uint32_t i = 0; i < count; i++)
        if (content->labels[i].state > depth + 1)
            content->labels[i].state = 1;
    keep_stores_in_order();
}

uint32_t program_context_depth(const struct program_context *programs) {
    return depth_in(program_context_load(&content_of(programs)->top));
}

/* --- a context as a whole --- */

static bool is_label(const struct program_content *content, uint32_t at, uint32_t start,
                     uint32_t depth_before) {
    const struct program_label *const label = &content->labels[at];
    const uint32_t end = start + label->size;
    if (label->start != start || label->size < 3 || end > PROGRAM_LABEL_BYTES ||
        label->state == 0 || label->depth <= depth_before)
        return false;
    const uint8_t *const entry = content->bytes + start;
    return entry[0] > 0 && 2u + entry[0] + entry[1] == label->size;
}

/* Returns true if the content is consistent; `content` must be a copy that the program cannot
 * change. */
static bool makes_sense(const struct program_content *content) {
    const uint32_t depth = depth_in(content->top);
    const uint32_t count = count_in(content->top);
    uint32_t end = 0;
    uint32_t depth_before = 0;
    if (content->form != OWN_FORM || span_check(content->span) != content->check ||
        count > PROGRAM_LABELS || bytes_in(content->top) > PROGRAM_LABEL_BYTES ||
        depth > MOST_DEPTH)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_label(content, i, end, depth_before))
            return false;
        end += content->labels[i].size;
        depth_before = content->labels[i].depth;
    }
    return end == bytes_in(content->top) && depth_before <= depth;
}

static void become_empty(struct program_content *content) {
    memset(content, 0, offsetof(struct program_content, bytes));
    content->form = OWN_FORM;
}

/* Copies only the used part, mostly a few hundred bytes, so that the copy touches no further
 * page. */
static void program_content_copy(struct program_content *to, const struct program_content *from) {
    const uint64_t top = program_context_load(&from->top);
    const uint32_t count = count_in(top) <= PROGRAM_LABELS ? count_in(top) : 0;
    const uint32_t bytes = bytes_in(top) <= PROGRAM_LABEL_BYTES ? bytes_in(top) : 0;
    memcpy(to, from, offsetof(struct program_content, labels));
    memcpy(to->labels, from->labels, count * sizeof *to->labels);
    memset(to->labels + count, 0, (PROGRAM_LABELS - count) * sizeof *to->labels);
    memcpy(to->bytes, from->bytes, bytes);
}

static uint32_t other_place(const struct program_context *programs) {
    return 1 - (atomic_load_explicit(&programs->current, memory_order_relaxed) & 1);
}

static void prepare_other(struct program_context *programs, const struct program_content *saved) {
    struct program_content *const other = &programs->contents[other_place(programs)];
    program_content_copy(other, saved);
    if (!makes_sense(other))
        become_empty(other);
    keep_stores_in_order();
}

static void show_other(struct program_context *programs) {
    keep_stores_in_order();
    atomic_store_explicit(&programs->current, other_place(programs), memory_order_relaxed);
    keep_stores_in_order();
}

void program_context_save(const struct program_context *programs, struct program_content *saved) {
    program_content_copy(saved, content_of(programs));
}

void program_context_restore(struct program_context *programs,
                             const struct program_content *saved) {
    prepare_other(programs, saved);
    show_other(programs);
}

void program_context_swap(struct program_context *programs, struct program_content *saved) {
    prepare_other(programs, saved);
    program_context_save(programs, saved);
    show_other(programs);
}

/* Reads a copy, because the thread continues to run; a second copy shows whether the first one was
 * consistent.
 */
bool program_context_copy(const struct program_context *programs, struct program_context *copied) {
    struct program_content *const content = &copied->contents[0];
    struct program_content *const again = &copied->contents[1];
    atomic_store_explicit(&copied->current, 0, memory_order_relaxed);
    program_content_copy(content, content_of(programs));
    if (!makes_sense(content))
        return false;
    /* loads the second copy after the first one; pairs with keep_stores_in_order() of the writers
     */
    atomic_thread_fence(memory_order_acquire);
    program_content_copy(again, content_of(programs));
    return memcmp(content, again, offsetof(struct program_content, bytes)) == 0 &&
           memcmp(content->bytes, again->bytes, bytes_in(content->top)) == 0;
}

/* --- where contexts are stored --- */

static _Atomic uintptr_t segments[SEGMENTS];

static uintptr_t segment_at(_Atomic uintptr_t *segment) {
    /* pairs with the exchange below, on another thread */
    uintptr_t there = atomic_load_explicit(segment, memory_order_acquire);
    if (there)
        return there;
    void *const memory = profiler_memory_take(SEGMENT_BYTES);
    if (!memory || /* the exchange pairs with the acquire above */
        atomic_compare_exchange_strong_explicit(segment, &there, (uintptr_t)memory,
                                                memory_order_acq_rel, memory_order_acquire))
        return (uintptr_t)memory;
    profiler_memory_unmap(memory, SEGMENT_BYTES);
    return there;
}

static struct program_context *program_context_at(uint32_t index) {
    if (index >= SEGMENTS * PER_SEGMENT)
        return NULL;
    const uintptr_t segment = segment_at(&segments[index / PER_SEGMENT]);
    return segment ? (struct program_context *)segment + index % PER_SEGMENT : NULL;
}

struct program_context *program_context_make(uint32_t index) {
    struct program_context *const programs = program_context_at(index);
    if (!programs)
        return NULL;
    become_empty(&programs->contents[0]);
    atomic_store_explicit(&programs->current, 0, memory_order_relaxed);
    keep_stores_in_order();
    return programs;
}

struct program_context *program_context_keep(uint32_t index, const struct program_context *before) {
    struct program_context *const programs = program_context_at(index);
    if (!programs || programs == before)
        return programs;
    program_content_copy(&programs->contents[0], content_of(before));
    atomic_store_explicit(&programs->current, 0, memory_order_relaxed);
    keep_stores_in_order();
    return programs;
}

/* --- the reader --- */

/* Counts the entries of the context, which another source has added. */
static uint32_t count_entries(const struct sample_context *context) {
    struct context_attribute attribute;
    uint32_t at = 0;
    uint32_t count = 0;
    while (context_next_attribute(context, &at, &attribute))
        count++;
    return count;
}

bool program_context_add_labels(const struct program_context *own, struct sample_context *context) {
    const struct program_content *const content = content_of(own);
    const uint32_t count = count_in(content->top);
    uint32_t entries = count_entries(context);
    bool fit = depth_in(content->top) == count;
    for (uint32_t i = 0; i < count; i++) {
        const struct program_label *const label = &content->labels[i];
        if (label->state != 1)
            continue;
        if (entries == CONTEXT_ATTRIBUTES ||
            context->attribute_bytes + label->size > CONTEXT_ATTRIBUTE_BYTES) {
            fit = false;
            continue;
        }
        memcpy(context->attributes + context->attribute_bytes, content->bytes + label->start,
               label->size);
        context->attribute_bytes += label->size;
        entries++;
    }
    /* unused bytes of the last word, which must be zero */
    const size_t rest = -(size_t)context->attribute_bytes % 8;
    memset(context->attributes + context->attribute_bytes, 0, rest);
    return fit;
}

enum context_outcome program_context_read(const struct program_context *programs,
                                          struct sample_context *context) {
    const struct program_content *const content = content_of(programs);
    if (span_check(content->span) != content->check)
        return CONTEXT_WRONG;
    if (content->top == 0 && !(content->span[0] | content->span[1] | content->span[2]))
        return CONTEXT_NONE;
    memcpy(context->trace_id, content->span, TRACE_ID_BYTES);
    memcpy(context->span_id, content->span + 2, SPAN_ID_BYTES);
    context->reserved = 0;
    context->attribute_bytes = 0;
    return program_context_add_labels(programs, context) ? CONTEXT_READ : CONTEXT_CUT;
}
