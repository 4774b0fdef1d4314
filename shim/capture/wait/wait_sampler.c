#include "wait_sampler.h"

#include "clock.h"
#include "holder_stack.h"
#include "kernel/profiler_memory.h"
#include "wait_observe.h"
#include "wait_record.h"

_Atomic uint8_t wait_slots_on;

enum { JITTER_SHARE = 4 }; /* varies the period by 1/4, in both directions */
enum { UNPOLLED_PERIODS = 2 };

/* --- start and end --- */

void wait_sampler_start(struct wait_sampler *waits, const struct config *config,
                        const struct recorder *recorder, const struct log *log) {
    waits->recorder = recorder;
    waits->log = log;
    waits->types = config->types & (PROFILE_OFF_CPU | PROFILE_SCHED_DELAY | PROFILE_THREADS);
    waits->next_poll_ns = UINT64_MAX;
    if (!waits->types)
        return;
    waits->accounts = wait_accounts_open(recorder->threads->max_depth);
    waits->room.copy = profiler_memory_take(BLOCKED_STACK_BYTES);
    if (!waits->accounts || !waits->room.copy) {
        log_debug(log, "no memory to sample waiting threads; only CPU and memory are profiled");
        waits->types = 0;
        return;
    }
    waits->random = monotonic_nano() | 1;
    waits->settings = settings_version(recorder->settings) - 1;
    atomic_store(&wait_slots_on, WAIT_SLOTS_ON);
}

void wait_sampler_after_fork(struct wait_sampler *waits) {
    waits->table = (struct sample_table){.first_chunk = CHUNK_NONE};
    last_stacks_after_fork(&waits->stacks);
    if (!waits->types)
        return;
    wait_accounts_after_fork(waits->accounts);
    waits->kernel = (struct kernel_view){.helper = 0};
    waits->stop = (struct process_stop){.sleep_ns = 0};
    waits->budget = (struct wait_budget){.wanted = 0};
    waits->settings = settings_version(waits->recorder->settings) - 1;
    waits->next_poll_ns = 0;
    waits->next_thread = 0;
    atomic_store(&wait_slots_on, WAIT_SLOTS_UNPOLLED);
}

/* --- threads --- */

void wait_sampler_expect(const struct wait_sampler *waits, struct thread_state *thread) {
    if (waits->types)
        thread->wall.begun_ns = monotonic_nano();
}

void wait_sampler_begin_here(const struct wait_sampler *waits, struct thread_state *thread,
                             bool may_open) {
    struct thread_times times;
    if (!waits->types)
        return;
    kernel_own_times(&times, may_open);
    thread->wall.cpu_before_ns = times.cpu_ns;
    thread->wall.delay_before_ns = times.delay_ns;
    thread->wall.begun_ns = monotonic_nano();
}

void wait_sampler_end_thread(const struct wait_sampler *waits, struct thread_state *thread) {
    const uint64_t delay_ns = atomic_load_explicit(&thread->wall.delay_ns, memory_order_relaxed);
    if (!thread->wall.begun_ns)
        return;
    const uint64_t rest = wall_take_rest(
        &thread->wall, wall_off_nano(&thread->wall, monotonic_nano(), thread_cpu_nano(), delay_ns));
    if (rest && (settings_types(waits->recorder->settings) & PROFILE_OFF_CPU))
        record_unseen_wait(waits->recorder, thread, rest);
}

/* --- passes over the threads --- */

static void for_each(struct wait_sampler *waits,
                     void (*work)(struct wait_sampler *waits, struct thread_state *thread,
                                  struct wait_account *account)) {
    const struct thread_table *const threads = waits->recorder->threads;
    for (uint32_t i = 0; i < thread_table_count(threads); i++) {
        struct thread_state *const thread = thread_table_at(threads, i);
        struct wait_account *const account = wait_account_of(waits, thread);
        if (account)
            work(waits, thread, account);
    }
}

static void begin_pass(struct wait_sampler *waits) {
    waits->pass_start_ns = monotonic_nano();
    waits->began_lock_wait = false;
}

static void observe(struct wait_sampler *waits, struct thread_state *thread,
                    struct wait_account *account) {
    wait_observe(waits, thread, account);
    waits->began_lock_wait |= account->waits && account->lock_kind;
}

static void find_holder_again(struct wait_sampler *waits, struct thread_state *thread,
                              struct wait_account *account) {
    (void)thread;
    if (account->waits && account->wait_start_ns >= waits->pass_start_ns)
        holder_stack_find_again(waits, account);
}

/* Ends a pass that observed threads. A waiter may have been observed before its holder's wait was
 * known: then finds the holder's stack again, because the waiter's time so far belongs to the stack
 * of that wait. */
static void end_pass(struct wait_sampler *waits) {
    if (waits->began_lock_wait)
        for_each(waits, find_holder_again);
}

/* --- polls --- */

static void poll_thread(struct wait_sampler *waits, struct thread_state *thread, uint64_t now) {
    struct wait_account *const account = wait_account_of(waits, thread);
    if (!account)
        return;
    const uint64_t price = wait_observe_price(waits, thread, account);
    if (!wait_budget_allows(&waits->budget, &waits->random, price))
        return;
    if (wait_is_same(thread, account)) {
        wait_continue(waits, thread, account, now);
        return;
    }
    const uint64_t before = thread_cpu_nano();
    observe(waits, thread, account);
    wait_budget_learn(&waits->budget, thread_cpu_nano() - before);
}

static void poll_all_threads(struct wait_sampler *waits, uint64_t now) {
    const struct thread_table *const threads = waits->recorder->threads;
    const uint32_t count = thread_table_count(threads);
    const uint32_t most = count < WAIT_MOST_THREADS ? count : WAIT_MOST_THREADS;
    begin_pass(waits);
    for (uint32_t i = 0; i < most; i++) {
        waits->next_thread = waits->next_thread + 1 < count ? waits->next_thread + 1 : 0;
        poll_thread(waits, thread_table_at(threads, waits->next_thread), now);
    }
    end_pass(waits);
    /* the next poll, which may be cut short, begins at another thread */
    waits->next_thread = count ? (uint32_t)(random_next(&waits->random) >> 32) % count : 0;
}

/* Forgets descriptors, because they end with the helper that opened them. */
static void forget_files(struct wait_sampler *waits, struct thread_state *thread,
                         struct wait_account *account) {
    (void)waits;
    (void)thread;
    account->files = (struct thread_files){0, 0};
}

/* Records the wait of a thread until now, even a wait that the budget never allowed to observe. */
static void reconcile_thread(struct wait_sampler *waits, struct thread_state *thread,
                             struct wait_account *account) {
    if (!wait_is_same(thread, account)) {
        wait_observe(waits, thread, account);
        wait_reconcile(waits, thread, account);
        return;
    }
    wait_continue(waits, thread, account, monotonic_nano());
    wait_reconcile(waits, thread, account);
}

/* Observes a thread that is no longer in its known wait. The harvest runs this for all threads
 * before any wait is recorded, so that the holder of a lock is seen before the wait for it is
 * recorded. A thread that has used CPU time may have left its call by a longjmp, or be in a
 * handler. */
static void observe_if_changed(struct wait_sampler *waits, struct thread_state *thread,
                               struct wait_account *account) {
    if (!wait_is_same(thread, account) || wait_has_worked(account))
        observe(waits, thread, account);
}

/* Observes every thread that has left its known wait, and records nothing of the new waits. */
static void observe_changed_threads(struct wait_sampler *waits) {
    begin_pass(waits);
    for_each(waits, observe_if_changed);
    end_pass(waits);
}

/* Closes a thread's time when the types change: records its wait until now for the types that were
 * on. If a thread is running at this moment, its time off CPU since its last sample is recorded
 * without a stack, as at the end of the process. */
static void close_stretch(struct wait_sampler *waits, struct thread_state *thread,
                          struct wait_account *account) {
    reconcile_thread(waits, thread, account);
    if (!account->waits)
        wait_record_remainder(waits, thread, account);
}

/* Follows the settings. When the types change, the time so far is recorded for the types that were
 * on; while no type is on, waits are not recorded. */
static void wait_follow_settings(struct wait_sampler *waits) {
    const struct settings *const settings = waits->recorder->settings;
    const uint32_t version = settings_version(settings);
    if (version == waits->settings)
        return;
    const unsigned before = waits->on;
    const unsigned on = settings_types(settings) & waits->types;
    waits->settings = version;
    atomic_store(&wait_slots_on, on ? WAIT_SLOTS_ON : WAIT_SLOTS_OFF);
    if (waits->paused && on)
        for_each(waits, wait_discard);
    else if (before && before != on) {
        observe_changed_threads(waits);
        for_each(waits, close_stretch);
    }
    waits->paused = !on;
    waits->on = on;
}

static void record_unpolled(struct wait_sampler *waits, struct thread_state *thread,
                            struct wait_account *account) {
    const uint64_t period = settings_wait_period_nano(waits->recorder->settings);
    if (monotonic_nano() - thread->wall.begun_ns > UNPOLLED_PERIODS * period)
        wait_record_remainder(waits, thread, account);
}

/* Follows all changes. Returns true if threads must be polled. */
static bool wait_follow(struct wait_sampler *waits) {
    struct blocked_stack *const room = &waits->room;
    struct python *const python = waits->recorder->python;
    const bool was_alone = atomic_load(&wait_slots_on) == WAIT_SLOTS_UNPOLLED;
    if (kernel_view_follow(&waits->kernel, log_thread_is_separate(waits->log))) {
        waits->stop = (struct process_stop){.sleep_ns = 0};
        for_each(waits, forget_files);
    }
    wait_follow_settings(waits);
    if (!room->python_threads && python && atomic_load(&python->on)) {
        /* copies the pointer again, because Python may have been found since the last poll */
        room->python = python;
        room->python_threads = python_threads_new();
    }
    /* The helper of a forked child starts late. The place where it first sees a thread does not
     * explain earlier waits; these are recorded without a stack, as at the end of a process that
     * had no helper. */
    if (was_alone) {
        atomic_store(&wait_slots_on, waits->on ? WAIT_SLOTS_ON : WAIT_SLOTS_OFF);
        if (waits->on)
            for_each(waits, record_unpolled);
    }
    return waits->on != 0;
}

uint64_t wait_sampler_next_poll(const struct wait_sampler *waits) {
    if (!waits->types)
        return UINT64_MAX;
    return waits->settings == settings_version(waits->recorder->settings) ? waits->next_poll_ns : 0;
}

void wait_sampler_poll(struct wait_sampler *waits) {
    const uint64_t now = monotonic_nano();
    if (!waits->types || now < wait_sampler_next_poll(waits))
        return;
    if (!wait_follow(waits)) {
        waits->next_poll_ns = UINT64_MAX;
        return;
    }
    const uint64_t period = settings_wait_period_nano(waits->recorder->settings);
    const uint64_t spread = period / JITTER_SHARE;
    waits->next_poll_ns =
        now + period - spread + (uint64_t)(random_unit(&waits->random) * 2 * (double)spread);
    wait_budget_begin(&waits->budget, period);
    poll_all_threads(waits, now);
}

/* --- stops of the whole process --- */

void wait_sampler_before_sleep(struct wait_sampler *waits) {
    if (waits->on)
        process_stop_before_sleep(&waits->stop, &waits->kernel);
}

void wait_sampler_after_sleep(struct wait_sampler *waits, uint64_t until) {
    const uint64_t nano =
        waits->on ? process_stop_after_sleep(&waits->stop, &waits->kernel, until) : 0;
    const struct thread_table *const threads = waits->recorder ? waits->recorder->threads : NULL;
    for (uint32_t i = 0; nano && i < thread_table_count(threads); i++) {
        struct thread_state *const thread = thread_table_at(threads, i);
        struct wait_account *const account = wait_account_of(waits, thread);
        if (account)
            wait_observe_stop(waits, thread, account, nano);
    }
}

/* --- the harvest --- */

void wait_sampler_harvest(struct wait_sampler *waits, bool is_last,
                          void (*visit)(void *arg, const struct sample *sample), void *arg) {
    if (waits->types && wait_follow(waits)) {
        observe_changed_threads(waits);
        for_each(waits, reconcile_thread);
        if (is_last)
            for_each(waits, wait_record_remainder);
    }
    sample_table_drain(&waits->table, &waits->recorder->threads->pool, visit, arg);
}

/* --- queries --- */

const struct wait_account *wait_sampler_current_wait(const struct wait_sampler *waits,
                                                     const struct thread_state *thread) {
    const struct wait_account *const account =
        waits->accounts ? wait_account_at(waits->accounts, thread->index) : NULL;
    const bool is_its = account && account->begun_ns &&
                        account->begun_ns == thread->wall.begun_ns &&
                        account->tid == atomic_load(&thread->tid);
    return is_its && wait_is_same(thread, account) ? account : NULL;
}

const struct wait_account *wait_sampler_observe(struct wait_sampler *waits,
                                                struct thread_state *thread) {
    struct wait_account *const account = wait_account_of(waits, thread);
    if (!account)
        return NULL;
    reconcile_thread(waits, thread, account);
    return account->waits ? account : NULL;
}
