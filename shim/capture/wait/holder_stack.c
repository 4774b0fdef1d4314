#include "holder_stack.h"

#include "holder_names.h"
#include "last_stacks.h"
#include "lock_holder.h"

#include <string.h>

static void keep(struct wait_detail *detail, const uint64_t *frames, uint32_t count,
                 uint64_t interval) {
    const uint32_t most = WAIT_HOLDER_FRAMES;
    detail->holder_frame_count = (uint16_t)(count < most ? count : most);
    detail->holder_interval = interval;
    memcpy(detail->holder_frames, frames, detail->holder_frame_count * sizeof *frames);
}

/* NULL: it is not of this process, or past its end. */
static const struct thread_state *thread_of(const struct thread_table *threads, uint32_t tid) {
    for (uint32_t i = 0; tid && i < thread_table_count(threads); i++) {
        const struct thread_state *const thread = thread_table_at(threads, i);
        if (atomic_load_explicit(&thread->tid, memory_order_relaxed) == tid)
            return thread;
    }
    return NULL;
}

void holder_stack_begin(const struct wait_sampler *waits, struct wait_account *account,
                        uint32_t slot_kind, uint64_t lock) {
    const struct thread_table *const threads = waits->recorder->threads;
    struct wait_detail *const detail = &account->detail;
    struct sample running;
    detail->object = lock;
    detail->holder = lock_holder(slot_kind, lock);
    holder_names_want(detail->holder);
    account->holder = thread_of(threads, detail->holder);
    account->holder_sequence = UINT64_MAX;
    if (account->holder && last_stack_of(threads, account->holder, &running))
        keep(detail, running.frames, running.frame_count, running.interval);
    holder_stack_follow(waits, account);
}

void holder_stack_follow(const struct wait_sampler *waits, struct wait_account *account) {
    if (!account->holder)
        return;
    const struct wait_account *const wait = wait_sampler_wait_of(waits, account->holder);
    if (!wait || wait->tid != account->detail.holder || wait->sequence == account->holder_sequence)
        return;
    keep(&account->detail, wait->frames, wait->frame_count, wait->interval);
    account->holder_sequence = wait->sequence;
}
