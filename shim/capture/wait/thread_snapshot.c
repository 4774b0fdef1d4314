#include "thread_snapshot.h"

#include "clock.h"
#include "holder_stack.h"
#include "kernel/profiler_memory.h"
#include "record/kernel_workers.h"
#include "record/unknown_threads.h"
#include "wait_observe.h"
#include "wait_record.h"

#include <sys/auxv.h>

struct snapshot {
    struct wait_sampler *waits;
    void (*visit)(void *arg, const struct sample *sample);
    void *arg;
    struct sample_context room;
};

static void snapshot_show(struct snapshot *snapshot, uint32_t tid, struct sample *sample) {
    sample->kind = SAMPLE_THREAD;
    sample->tid = tid;
    sample->values[MEASURED_OBJECTS] = 1;
    snapshot->visit(snapshot->arg, sample);
}

/* --- a thread of the table --- */

static void show_waiting(struct snapshot *snapshot, const struct wait_account *account) {
    struct wait_detail detail = account->detail;
    detail.condition = CONDITION_BLOCKED;
    detail.waited_nano = monotonic_nano() - account->wait_start_ns;
    struct sample sample = wait_record_account_sample(account);
    sample.seen = &account->seen;
    sample.wait = &detail;
    snapshot_show(snapshot, account->tid, &sample);
}

/* Reports a thread that ends the process, at the place where it called exit() or was
 * interrupted. */
static void show_last_state(struct snapshot *snapshot, const struct wait_account *account) {
    const struct wait_detail detail = {.condition = CONDITION_RUNNING};
    struct sample sample = wait_record_account_sample(account);
    sample.wait = &detail;
    snapshot_show(snapshot, account->tid, &sample);
}

/* Reads the condition of a thread whose system call cannot be read. The kernel shows it to every
 * user, also after the process has changed its own. */
static enum thread_condition condition_without_call(const struct snapshot *snapshot, uint32_t tid) {
    bool runs;
    if (!snapshot->waits->kernel.sees_threads ||
        listed_thread_close(listed_thread_open(tid), &runs) == LISTED_ENDED)
        return CONDITION_UNKNOWN;
    return runs ? CONDITION_RUNNING : CONDITION_BLOCKED;
}

/* Reports a thread as running, even if it has begun to wait and could not be observed since. If its
 * system call cannot be read, reports the condition alone. */
static void show_running(struct snapshot *snapshot, struct thread_state *thread, uint32_t tid,
                         enum thread_run_state run_state) {
    const struct recorder *const recorder = snapshot->waits->recorder;
    const uintptr_t routine = (uintptr_t)thread->start_routine;
    const uint64_t start = routine ? routine : getauxval(AT_ENTRY);
    const struct wait_detail detail = {.condition = run_state == RUN_UNKNOWN
                                                        ? condition_without_call(snapshot, tid)
                                                        : CONDITION_RUNNING};
    struct sample sample = {.flags = SAMPLE_FLAG_UNSAMPLED,
                            .interval = modules_interval(recorder->unwinder->modules),
                            .frames = &start,
                            .frame_count = 1};
    (void)last_stack_of(recorder->threads, thread, &sample);
    sample.wait = &detail;
    sample.context = record_context_of(recorder, thread, &snapshot->room);
    snapshot_show(snapshot, tid, &sample);
}

/* Checks again a thread that was not blocked earlier in this harvest. */
static enum thread_run_state observe_again(struct snapshot *snapshot, struct thread_state *thread,
                                           struct wait_account *account) {
    struct wait_sampler *const waits = snapshot->waits;
    struct blocked_call call;
    const enum thread_run_state run_state =
        kernel_thread_run_state(&waits->kernel, account->tid, &account->files, &call);
    if (run_state == RUN_BLOCKED)
        (void)wait_sampler_observe(waits, thread);
    return run_state;
}

/* Skips retired threads, because another thread may have their id. */
static void show_thread(struct snapshot *snapshot, struct thread_state *thread) {
    /* pairs with thread_begin() */
    const uint32_t tid = atomic_load_explicit(&thread->tid, memory_order_acquire);
    enum thread_run_state run_state = RUN_UNKNOWN;
    if (!tid || atomic_load(&thread->retired))
        return;
    struct wait_account *const account = wait_account_of(snapshot->waits, thread);
    if (account && account->is_last_state) {
        show_last_state(snapshot, account);
        return;
    }
    if (account && !account->waits)
        run_state = observe_again(snapshot, thread, account);
    if (account && account->waits) {
        /* follows the holder again, because the harvest may have found it later than the wait */
        holder_stack_follow(snapshot->waits, account);
        /* the harvest may have found the thread's context later than its wait */
        if (!account->has_context) {
            /* leaves out the times, because the thread may not have had this context since the wait
             * was first seen */
            account->seen = (struct span_seen){0, 0};
            account->has_context =
                record_context_of(snapshot->waits->recorder, thread, &account->context);
        }
        show_waiting(snapshot, account);
    } else
        show_running(snapshot, thread, tid, run_state);
}

/* --- an unknown thread --- */

/* Walks a stack whose bounds are not known. */
static void walk_unknown(const struct snapshot *snapshot, uint32_t tid,
                         const struct blocked_call *call, struct sample *sample) {
    const struct recorder *const recorder = snapshot->waits->recorder;
    const struct thread_state unknown_thread = {.tid = tid};
    const struct blocked_place blocked_place = {.stack_pointer = call->stack_pointer,
                                                .pc = call->pc};
    const enum unwind_end end = blocked_stack_walk(&snapshot->waits->room, recorder->unwinder,
                                                   &unknown_thread, &blocked_place);
    sample->frames = snapshot->waits->room.frames;
    sample->frame_count = snapshot->waits->room.count;
    if (end == UNWIND_DEPTH)
        sample->flags = SAMPLE_FLAG_DEPTH_CUT;
    else
        sample->flags = end == UNWIND_COMPLETE ? 0 : SAMPLE_FLAG_TRUNCATED;
    if (snapshot->waits->room.by_frame_pointer)
        sample->flags |= SAMPLE_FLAG_FRAME_POINTERS;
}

static void show_unknown_in(struct snapshot *snapshot, uint32_t tid, uint64_t *frames) {
    struct wait_sampler *const waits = snapshot->waits;
    struct thread_files files = {0, 0};
    struct blocked_call call;
    struct wait_detail detail = {.kind = WAIT_NONE};
    struct sample sample = {.flags = SAMPLE_FLAG_UNSAMPLED,
                            .interval = modules_interval(waits->recorder->unwinder->modules),
                            .wait = &detail,
                            .frames = frames};
    waits->room.frames = frames;
    waits->room.max = settings_max_stack_depth(waits->recorder->settings);
    const enum thread_run_state run_state =
        kernel_thread_run_state(&waits->kernel, tid, &files, &call);
    if (run_state == RUN_BLOCKED) {
        detail.condition = CONDITION_BLOCKED;
        detail.kind = (uint8_t)blocked_call_kind(&call);
        walk_unknown(snapshot, tid, &call, &sample);
    } else
        detail.condition =
            run_state == RUN_RUNNING ? CONDITION_RUNNING : condition_without_call(snapshot, tid);
    kernel_thread_close(&waits->kernel, &files);
    snapshot_show(snapshot, tid, &sample);
}

/* Reports a thread that the kernel runs, which has no stack of the program's. */
static void show_kernel_worker(struct snapshot *snapshot, uint32_t tid, bool runs) {
    const struct wait_detail detail = {.condition = runs ? CONDITION_RUNNING : CONDITION_BLOCKED};
    uint64_t none[1] = {0};
    struct sample sample = {.flags = SAMPLE_FLAG_KERNEL | SAMPLE_FLAG_UNSAMPLED,
                            .interval =
                                modules_interval(snapshot->waits->recorder->unwinder->modules),
                            .wait = &detail,
                            .frames = none};
    snapshot_show(snapshot, tid, &sample);
}

static void show_unknown(void *arg, uint32_t tid) {
    struct snapshot *const snapshot = arg;
    bool runs;
    if (kernel_worker_is(tid, &runs)) {
        show_kernel_worker(snapshot, tid, runs);
        return;
    }
    const size_t depth = snapshot->waits->recorder->threads->max_depth;
    const size_t bytes = whole_pages(depth * sizeof(uint64_t));
    uint64_t *const frames = profiler_memory_map(bytes);
    if (!frames)
        return;
    show_unknown_in(snapshot, tid, frames);
    profiler_memory_unmap(frames, bytes);
}

void thread_snapshot_visit(struct wait_sampler *waits,
                           void (*visit)(void *arg, const struct sample *sample), void *arg) {
    struct snapshot snapshot = {.waits = waits, .visit = visit, .arg = arg};
    struct thread_table *const threads = waits->recorder->threads;
    if (!(waits->on & PROFILE_THREADS))
        return;
    for (uint32_t i = 0; i < thread_table_count(threads); i++)
        show_thread(&snapshot, thread_table_at(threads, i));
    unknown_threads_visit(threads, show_unknown, &snapshot);
}
