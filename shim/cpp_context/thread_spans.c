#include "thread_spans.h"

#include <stdatomic.h>
#include <string.h>

enum { KEPT = 4 }; /* number of contexts kept for a thread; spans rarely nest deeper */

/* Has the layout of OTEP 4947's record, without attributes, which would follow. */
struct record {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t valid; /* 1: the record is valid */
    uint8_t flags;
    uint16_t attributes_bytes;
};
_Static_assert(sizeof(struct record) == 28, "OTEP 4947");

struct kept {
    struct attached attached;
    struct span_ids ids;
};

/* Holds the state of one thread. Initially all zero. */
struct thread_spans {
    struct record record;
    /* a bit for each storage: set if it has no context below the kept ones */
    uint16_t bottom_known;
    uint8_t count;
    bool shown; /* the thread-local variable points to the record */
    struct kept kept[KEPT];
};

/* Readers find the record by this variable's name, in this and in other processes. */
extern __thread struct record *otel_thread_ctx_v1;
__attribute__((visibility("default"))) __thread struct record *otel_thread_ctx_v1;

static __thread struct thread_spans here;

/* Returns the state of the calling thread. Kept in one function, because the variable's address
 * costs a call, which the compiler would otherwise repeat for each use. */
static inline struct thread_spans *this_thread(void) {
    struct thread_spans *spans = &here;
    __asm__("" : "+r"(spans));
    return spans;
}

/* --- publishing --- */

/* Orders writes for a reader that interrupts this thread, for which the compiler's order suffices:
 * pairs with no fence. */
static void keep_order(void) {
    atomic_signal_fence(memory_order_seq_cst);
}

static void thread_spans_publish(struct thread_spans *spans, const struct span_ids *ids) {
    struct record *const record = &spans->record;
    record->valid = 0;
    if (!ids || !ids->active)
        return;
    keep_order();
    memcpy(record->trace_id, ids->trace_id, sizeof record->trace_id);
    memcpy(record->span_id, ids->span_id, sizeof record->span_id);
    record->flags = ids->flags;
    keep_order();
    record->valid = 1;
    keep_order();
    if (!spans->shown)
        otel_thread_ctx_v1 = record;
    spans->shown = true;
}

/* --- attached contexts --- */

/* Drops the kept context that was attached first; then its storage has a context below the kept
 * ones. */
static void forget_first(struct thread_spans *spans) {
    spans->bottom_known &= (uint16_t) ~(1u << spans->kept[0].attached.storage);
    spans->count--;
    for (unsigned i = 0; i < spans->count; i++)
        spans->kept[i] = spans->kept[i + 1];
}

void thread_spans_push(const struct attached *attached, const struct span_ids *ids) {
    struct thread_spans *const spans = this_thread();
    if (spans->count == KEPT)
        forget_first(spans);
    spans->kept[spans->count].attached = *attached;
    spans->kept[spans->count].ids = *ids;
    spans->count++;
    thread_spans_publish(spans, ids);
}

/* Returns the index from which on the storage has detached its kept contexts; 0, too, if the
 * token's context is not kept. The API takes the last context that is equal to the token's. */
static unsigned first_to_go(const struct thread_spans *spans, uintptr_t token, unsigned storage) {
    unsigned found = spans->count;
    while (found > 0 && (spans->kept[found - 1].attached.token != token ||
                         spans->kept[found - 1].attached.storage != storage))
        found--;
    if (found == 0)
        /* the context is below the kept ones, so the storage has detached all kept contexts */
        return 0;
    const uintptr_t list = spans->kept[--found].attached.list;
    for (unsigned i = found + 1; i < spans->count; i++)
        if (spans->kept[i].attached.list == list && spans->kept[i].attached.storage == storage)
            found = i;
    return found;
}

bool thread_spans_has(uintptr_t token, unsigned storage) {
    const struct thread_spans *const spans = this_thread();
    for (unsigned i = 0; i < spans->count; i++)
        if (spans->kept[i].attached.token == token && spans->kept[i].attached.storage == storage)
            return true;
    return false;
}

bool thread_spans_pop(uintptr_t token, unsigned storage) {
    struct thread_spans *const spans = this_thread();
    unsigned left = first_to_go(spans, token, storage);
    for (unsigned i = left; i < spans->count; i++)
        if (spans->kept[i].attached.storage != storage)
            spans->kept[left++] = spans->kept[i];
    spans->count = (uint8_t)left;
    thread_spans_publish(spans, left > 0 ? &spans->kept[left - 1].ids : NULL);
    return left > 0 || spans->bottom_known & 1u << storage;
}

void thread_spans_found(unsigned storage, uintptr_t list, const struct span_ids *ids) {
    struct thread_spans *const spans = this_thread();
    const struct attached attached = {.token = 0, .list = list, .storage = storage};
    if (list == CONTEXT_IN_DOUBT)
        thread_spans_publish(spans, NULL);
    else if (list)
        thread_spans_push(&attached, ids);
    else
        spans->bottom_known |= (uint16_t)(1u << storage);
}
