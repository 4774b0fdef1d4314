/* Sampled allocations: counted where they were made, remembered until they are freed. */
#include "capture.h"

#include "arch/x86_64.h"
#include "poisson.h"

#include <errno.h>
#include <string.h>

struct address_filter address_filter;

static void remember(struct thread_state *thread, const void *object, const struct sample *sample) {
    const uint32_t stack = stack_store_keep(&capture.stacks, sample->frames, sample->frame_count,
                                            sample->flags, modules_interval(&capture.modules));
    if (stack == STACK_NONE) {
        thread_count_drop(thread, DROP_STACK_STORE_FULL);
        return;
    }
    const struct live_object live = {.address = (uintptr_t)object,
                                     .objects = sample->objects,
                                     .bytes = sample->bytes,
                                     .stack = stack};
    bool replaced;
    if (!live_table_insert(&capture.live, &live, &replaced))
        thread_count_drop(thread, DROP_LIVE_FULL);
    else if (!replaced)
        address_filter_change(&address_filter, object, 1);
}

/* A stack that only the helper could finish is kept as far as it is known. */
static void mark_unfinished(struct sample *sample, enum unwind_end end) {
    if (end == UNWIND_EXPRESSION)
        sample->flags |= SAMPLE_TRUNCATED;
}

__attribute__((noinline)) void heap_sample(void *object, uint64_t size) {
    struct thread_state *const thread = own_tls.thread;
    const int saved = errno;
    own_tls.inside++;
    own_tls.alloc_left = poisson_gap(&thread->random, capture.alloc_interval);

    const double weight = poisson_weight(size, capture.alloc_interval);
    uint64_t registers[REGISTER_COUNT];
    REGISTERS_HERE(registers);
    struct sample sample = {
        .kind = SAMPLE_ALLOC, .objects = weight, .bytes = weight * (double)size};
    enum unwind_end end;
    bool crossed_signal;
    record_stack(thread, registers, (struct stack_range){0, 0}, &sample, &end, &crossed_signal);
    if (capture.heap_on) {
        mark_unfinished(&sample, end);
        remember(thread, object, &sample);
    }

    own_tls.inside--;
    errno = saved;
}

/* Nested in our own code (a signal handler of the application that frees while this thread samples)
 * the table may be locked by this very thread: the object stays listed until its address is used
 * again. */
bool heap_forget(const void *object, struct live_object *taken) {
    if (!capture.heap_on)
        return false;
    if (own_tls.inside) {
        atomic_fetch_add_explicit(&capture.dropped[DROP_BUSY], 1, memory_order_relaxed);
        return false;
    }
    own_tls.inside++;
    const bool found = live_table_remove(&capture.live, (uintptr_t)object, taken);
    own_tls.inside--;
    if (found)
        address_filter_change(&address_filter, object, -1);
    return found;
}

void heap_put_back(const struct live_object *taken) {
    bool replaced = false;
    own_tls.inside++;
    const bool fits = live_table_insert(&capture.live, taken, &replaced);
    own_tls.inside--;
    if (!fits)
        atomic_fetch_add_explicit(&capture.dropped[DROP_LIVE_FULL], 1, memory_order_relaxed);
    else if (!replaced)
        address_filter_change(&address_filter, (const void *)taken->address, 1);
}
