#include "holder_stack.h"

#include "holder_names.h"
#include "last_stacks.h"
#include "lock_holder.h"
#include "wait_observe.h"

#include <string.h>

/* value of holder_wait_start_ns for a holder that ends the process */
static const uint64_t HOLDER_ENDS = UINT64_MAX;

static void keep_holder_frames(struct wait_detail *detail, const uint64_t *frames, uint32_t count,
                               uint64_t interval) {
    const uint32_t most = WAIT_HOLDER_FRAMES;
    detail->holder_frame_count = (uint16_t)(count < most ? count : most);
    detail->holder_interval = interval;
    memcpy(detail->holder_frames, frames, detail->holder_frame_count * sizeof *frames);
}

/* Returns the thread with that id; NULL if it is not of this process, or has ended. */
static const struct thread_state *find_thread_by_tid(const struct thread_table *threads,
                                                     uint32_t tid) {
    for (uint32_t i = 0; tid && i < thread_table_count(threads); i++) {
        const struct thread_state *const thread = thread_table_at(threads, i);
        if (atomic_load_explicit(&thread->tid, memory_order_relaxed) == tid)
            return thread;
    }
    return NULL;
}

/* Returns the wait that the holder is in, or NULL if it is not known to wait now. */
static const struct wait_account *find_holder_wait(const struct wait_sampler *waits,
                                                   const struct wait_account *account) {
    const struct wait_account *const wait =
        account->holder ? wait_sampler_current_wait(waits, account->holder) : NULL;
    const bool is_its = wait && wait->tid == account->detail.holder;
    return is_its && wait_is_same(account->holder, wait) ? wait : NULL;
}

/* Returns the account of a holder that ends the process; NULL: it does not. */
static const struct wait_account *find_holder_last_state(const struct wait_sampler *waits,
                                                         const struct wait_account *account) {
    const struct wait_account *const last =
        account->holder ? wait_account_at(waits->accounts, account->holder->index) : NULL;
    return last && last->is_last_state && last->tid == account->detail.holder ? last : NULL;
}

static void find_holder_stack(const struct wait_sampler *waits, struct wait_account *account) {
    struct wait_detail *const detail = &account->detail;
    const struct wait_account *const last = find_holder_last_state(waits, account);
    const struct wait_account *const wait = last ? last : find_holder_wait(waits, account);
    struct sample running;
    detail->holder_frame_count = 0;
    detail->holder_interval = 0;
    account->holder_wait_start_ns = last ? HOLDER_ENDS : wait ? wait->wait_start_ns : 0;
    if (wait)
        keep_holder_frames(detail, wait->frames, wait->frame_count, wait->interval);
    else if (account->holder && last_stack_of(waits->recorder->threads, account->holder, &running))
        keep_holder_frames(detail, running.frames, running.frame_count, running.interval);
}

static void set_holder(const struct wait_sampler *waits, struct wait_account *account,
                       uint32_t holder) {
    account->detail.holder = holder;
    holder_names_want(holder);
    account->holder = find_thread_by_tid(waits->recorder->threads, holder);
    find_holder_stack(waits, account);
}

void holder_stack_begin(const struct wait_sampler *waits, struct wait_account *account,
                        uint32_t slot_kind, uint64_t lock) {
    account->lock_kind = slot_kind;
    account->detail.object = lock;
    set_holder(waits, account, lock_holder(slot_kind, lock, account->tid));
}

/* Returns the present holder, or 0 if the waiter itself has received the lock: then it no longer
 * waits, but has not cleared its slot yet. */
static uint32_t holder_now(const struct wait_account *account) {
    const uint32_t waiter = account->tid;
    const uint32_t holder = lock_holder(account->lock_kind, account->detail.object, waiter);
    return holder == waiter && account->detail.holder != waiter ? 0 : holder;
}

void holder_stack_find_again(const struct wait_sampler *waits, struct wait_account *account) {
    if (account->lock_kind && holder_now(account) == account->detail.holder)
        find_holder_stack(waits, account);
}

bool holder_stack_has_moved(const struct wait_sampler *waits, const struct wait_account *account) {
    if (!account->lock_kind)
        return false;
    if (holder_now(account) != account->detail.holder)
        return true;
    if (find_holder_last_state(waits, account))
        return account->holder_wait_start_ns != HOLDER_ENDS;
    const struct wait_account *const wait = find_holder_wait(waits, account);
    return wait && wait->wait_start_ns != account->holder_wait_start_ns;
}

void holder_stack_follow(const struct wait_sampler *waits, struct wait_account *account) {
    if (holder_stack_has_moved(waits, account))
        set_holder(waits, account, holder_now(account));
}
