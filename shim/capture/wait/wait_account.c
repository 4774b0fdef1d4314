#include "wait_account.h"

#include "kernel/profiler_memory.h"

static size_t stride(const struct wait_accounts *accounts) {
    return sizeof(struct wait_account) + accounts->max_depth * sizeof(uint64_t);
}

static size_t account_segment_bytes(const struct wait_accounts *accounts) {
    return whole_pages(stride(accounts) * THREADS_PER_SEGMENT);
}

struct wait_accounts *wait_accounts_open(uint32_t max_depth) {
    struct wait_accounts *const accounts = profiler_memory_take(whole_pages(sizeof *accounts));
    if (accounts)
        accounts->max_depth = max_depth;
    return accounts;
}

struct wait_account *wait_account_at(struct wait_accounts *accounts, uint32_t index) {
    struct wait_account **const segment = &accounts->segments[index / THREADS_PER_SEGMENT];
    if (!*segment)
        *segment = profiler_memory_map(account_segment_bytes(accounts));
    if (!*segment)
        return NULL;
    return (struct wait_account *)(void *)((char *)*segment +
                                           (index % THREADS_PER_SEGMENT) * stride(accounts));
}

void wait_accounts_after_fork(struct wait_accounts *accounts) {
    if (profiler_memory_is_emptied())
        return;
    /* a segment may be missing before others: the kernel refused its memory, or no thread of its
     * slots has waited */
    for (uint32_t i = 0; i < THREAD_SEGMENTS; i++)
        profiler_memory_reset_in_child(accounts->segments[i], account_segment_bytes(accounts));
}
