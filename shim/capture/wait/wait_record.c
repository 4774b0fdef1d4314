#include "wait_record.h"

#include "clock.h"
#include "hash.h"

#include <sys/auxv.h>

static bool wait_record_add(struct wait_sampler *waits, struct thread_state *thread,
                            const struct sample *sample) {
    const bool added = sample_table_add(&waits->table, &waits->recorder->threads->pool, sample);
    if (added)
        thread_count_sample(thread, sample->context && context_has_span(sample->context));
    else
        thread_count_drop(thread, chunk_pool_drop_reason(&waits->recorder->threads->pool));
    return added;
}

static uint64_t wait_interval(const struct wait_sampler *waits) {
    return modules_interval(waits->recorder->unwinder->modules);
}

static uint64_t start_of(const struct thread_state *thread) {
    const uintptr_t start = (uintptr_t)thread->start_routine;
    return start ? start : getauxval(AT_ENTRY);
}

struct sample wait_record_account_sample(const struct wait_account *account) {
    return (struct sample){.flags = account->flags,
                           .tid = account->tid,
                           .interval = account->interval,
                           .context = account->has_context ? &account->context : NULL,
                           .frames = account->frames,
                           .frame_count = account->frame_count};
}

/* Returns a sample of time whose stack is not known; its only frame is `*start`, where the thread
 * began. */
static struct sample unsampled(const struct wait_sampler *waits, const struct thread_state *thread,
                               uint64_t *start) {
    *start = start_of(thread);
    return (struct sample){.flags = SAMPLE_FLAG_UNSAMPLED,
                           .interval = wait_interval(waits),
                           .frames = start,
                           .frame_count = 1};
}

bool wait_record_off_cpu(struct wait_sampler *waits, struct thread_state *thread,
                         struct wait_account *account, uint64_t nano) {
    /* sets the idle flag for the samples of this wait, and for the thread's sample in a thread
     * profile */
    const uint64_t stack = hash_words(0, account->frames, account->frame_count);
    const bool is_idle = idle_waits_add(&account->idle, (enum wait_kind)account->detail.kind, stack,
                                        nano, account->begun_ns, monotonic_nano());
    account->flags &= (uint8_t)~SAMPLE_FLAG_IDLE;
    account->flags |= is_idle ? SAMPLE_FLAG_IDLE : 0;
    struct sample sample = wait_record_account_sample(account);
    sample.kind = SAMPLE_OFF_CPU;
    sample.seen = &account->seen;
    sample.wait = &account->detail;
    sample.values[MEASURED_NANO] = (double)nano;
    return !(waits->on & PROFILE_OFF_CPU) || wait_record_add(waits, thread, &sample);
}

bool wait_record_stopped(struct wait_sampler *waits, struct thread_state *thread,
                         const struct wait_account *account, uint64_t nano) {
    const struct wait_detail detail = {.kind = WAIT_STOPPED};
    uint64_t start;
    struct sample sample =
        account->waits ? wait_record_account_sample(account) : unsampled(waits, thread, &start);
    if (!(waits->on & PROFILE_OFF_CPU))
        return true;
    if (!account->waits)
        (void)last_stack_of(waits->recorder->threads, thread, &sample);
    sample.flags &= (uint8_t)~SAMPLE_FLAG_IDLE;
    sample.kind = SAMPLE_OFF_CPU;
    sample.tid = account->tid;
    sample.wait = &detail;
    sample.values[MEASURED_NANO] = (double)nano;
    return wait_record_add(waits, thread, &sample);
}

bool wait_record_unseen(struct wait_sampler *waits, struct thread_state *thread, uint32_t tid,
                        uint64_t nano) {
    uint64_t start;
    struct sample sample = unsampled(waits, thread, &start);
    sample.kind = SAMPLE_OFF_CPU;
    sample.tid = tid;
    sample.values[MEASURED_NANO] = (double)nano;
    return !(waits->on & PROFILE_OFF_CPU) || wait_record_add(waits, thread, &sample);
}

bool wait_record_delay(struct wait_sampler *waits, struct thread_state *thread, uint32_t tid,
                       uint64_t nano) {
    uint64_t start;
    struct sample sample = unsampled(waits, thread, &start);
    if (!(waits->on & PROFILE_SCHED_DELAY))
        return true;
    (void)last_stack_of(waits->recorder->threads, thread, &sample);
    sample.kind = SAMPLE_SCHED_DELAY;
    sample.tid = tid;
    sample.values[MEASURED_NANO] = (double)nano;
    return wait_record_add(waits, thread, &sample);
}
