#include "wait_observe.h"

#include "clock.h"
#include "holder_stack.h"
#include "kernel/wait.h"
#include "wait_record.h"

#include <string.h>

/* Says how much a waiting thread may work. Without a slot, a thread may be waiting if it has used
 * less than half of the time since the last check. */
enum { RUNS_SHARE = 2 };
/* Bounds the distance, in bytes, from a hook to the system call below it: libc's frames, or a
 * signal frame and a handler's. */
enum { HOOK_DEPTH = 256 << 10 };
/* Calls a wait long when so much of its time is pending. */
enum { LONG_WAIT_NANO = 500000000 };
/* Bounds how long the helper waits for a thread that ends the process, in rounds of wait.h. */
enum { LAST_CALL_ROUNDS = 200 };

/* --- accounts --- */

static bool wait_thread_is_gone(const struct thread_state *thread) {
    return atomic_load(&thread->retired) || atomic_load(&thread->wall.accounted_ns) == WALL_ENDED;
}

static void record_pending(struct wait_sampler *waits, struct thread_state *thread,
                           struct wait_account *account) {
    const uint64_t pending_ns = account->pending_ns;
    account->pending_ns = 0;
    if (pending_ns && !wait_record_off_cpu(waits, thread, account, pending_ns) &&
        !wait_thread_is_gone(thread))
        wall_give_back(&thread->wall, pending_ns);
}

struct wait_account *wait_account_of(struct wait_sampler *waits, struct thread_state *thread) {
    /* pairs with thread_begin() */
    const uint32_t tid = atomic_load_explicit(&thread->tid, memory_order_acquire);
    const uint64_t begun_ns = thread->wall.begun_ns;
    struct wait_account *const account = wait_account_at(waits->accounts, thread->index);
    if (!account)
        return NULL;
    if (account->begun_ns && (!tid || account->begun_ns != begun_ns || account->tid != tid)) {
        record_pending(waits, thread, account); /* the thread of the account has ended */
        kernel_thread_close(&waits->kernel, &account->files);
        memset(account, 0, sizeof *account);
    }
    if (!tid || !begun_ns)
        return NULL;
    if (!account->begun_ns) {
        account->begun_ns = begun_ns;
        account->tid = tid;
    }
    return account;
}

/* --- the same wait --- */

/* Pairs with wait_slot_begin() and wait_slot_end(). */
static uint64_t sequence_of(const struct thread_state *thread) {
    return atomic_load_explicit(&thread->wait_slot.sequence, memory_order_acquire);
}

bool wait_is_same(const struct thread_state *thread, const struct wait_account *account) {
    if (!account->waits || wait_thread_is_gone(thread))
        return false;
    if (sequence_of(thread) != account->sequence)
        return false;
    return account->is_hooked || clock_nano(cpu_clock_of(account->tid)) == account->cpu_ns;
}

bool wait_has_worked(const struct wait_account *account) {
    return account->waits && clock_nano(cpu_clock_of(account->tid)) != account->cpu_ns;
}

uint64_t wait_observe_price(const struct wait_sampler *waits, const struct thread_state *thread,
                            const struct wait_account *account) {
    const uint64_t sequence = sequence_of(thread);
    if (account->waits && account->sequence == sequence)
        return account->is_hooked ? WAIT_COMPARE_NANO : WAIT_CLOCK_NANO;
    return waits->budget.stack_nano;
}

static bool wants_span_times(const struct wait_sampler *waits) {
    return settings_span_times(waits->recorder->settings);
}

void wait_continue(struct wait_sampler *waits, struct thread_state *thread,
                   struct wait_account *account, uint64_t present) {
    struct blocked_call call;
    const uint64_t now = wall_present(&thread->wall, present);
    if (wants_span_times(waits) && account->seen.last_nano && now > account->seen.last_nano &&
        wait_is_same(thread, account) && !wait_has_worked(account))
        account->seen.last_nano = now; /* the thread has never left the wait */
    if (now > account->last_seen_ns)
        account->pending_ns += wall_take(&thread->wall, account->off_cpu_at_last_seen_ns +
                                                            (now - account->last_seen_ns));
    const bool moved = holder_stack_has_moved(waits, account);
    /* During a long wait the helper queries the kernel now and then, and records the pending time
     * if the thread is still blocked. A handler may have run meanwhile, and have waited for a
     * processor.
     */
    if (moved || (account->pending_ns >= LONG_WAIT_NANO &&
                  kernel_thread_run_state(&waits->kernel, account->tid, &account->files, &call) ==
                      RUN_BLOCKED))
        /* records the time until now for the former holder */
        wait_reconcile(waits, thread, account);
    if (moved)
        holder_stack_follow(waits, account);
}

/* --- reconciling --- */

/* Returns the largest delay that is possible: the thread's life so far, less the recorded off-CPU
 * time, which was no delay. Linux from 6.12 on may report a sleep as delay, if it moves a sleeping
 * thread that is still on its queue to another processor (sched_delayed in kernel/sched/fair.c). */
static uint64_t most_delay(const struct thread_state *thread, const struct wait_account *account,
                           uint64_t cpu_ns) {
    const struct wall_time *const wall = &thread->wall;
    const uint64_t accounted_ns = atomic_load(&wall->accounted_ns);
    if (accounted_ns == WALL_ENDED)
        return UINT64_MAX;
    const uint64_t off = wall_off_nano(wall, monotonic_nano(), cpu_ns, 0);
    const uint64_t sure =
        accounted_ns > account->pending_ns ? accounted_ns - account->pending_ns : 0;
    return wall->delay_before_ns + (off > sure ? off - sure : 0);
}

static void leave_out_false_delay(const struct thread_state *thread, struct wait_account *account,
                                  struct thread_times *times) {
    times->delay_ns -=
        times->delay_ns < account->false_delay_ns ? times->delay_ns : account->false_delay_ns;
    const uint64_t most = most_delay(thread, account, times->cpu_ns);
    if (times->delay_ns <= most)
        return;
    account->false_delay_ns += times->delay_ns - most;
    times->delay_ns = most;
}

/* Reads the thread's times, and records the run-queue delay since the last record: it is subtracted
 * from the time off CPU. If schedstat can no longer be read, the last value stays. Returns false if
 * the thread has ended. */
static bool read_times(struct wait_sampler *waits, struct thread_state *thread,
                       struct wait_account *account, struct thread_times *times) {
    const uint64_t known = atomic_load_explicit(&thread->wall.delay_ns, memory_order_relaxed);
    if (!kernel_thread_times(&waits->kernel, account->tid, &account->files, times))
        return false;
    leave_out_false_delay(thread, account, times);
    if (times->delay_ns < known)
        times->delay_ns = known;
    atomic_store_explicit(&thread->wall.delay_ns, times->delay_ns, memory_order_relaxed);
    const uint64_t before = thread->wall.delay_before_ns;
    const uint64_t accounted_ns = account->delay_ns > before ? account->delay_ns : before;
    if (times->delay_ns > accounted_ns &&
        (account->discards_delay ||
         wait_record_delay(waits, thread, account->tid, times->delay_ns - accounted_ns)))
        account->delay_ns = times->delay_ns;
    return true;
}

/* Gives back time that was taken in excess: during a wait whose slot has not changed, the thread
 * may have worked (in a handler, or for a large read). */
static void correct_pending(struct thread_state *thread, struct wait_account *account,
                            uint64_t off) {
    const uint64_t accounted_ns = atomic_load(&thread->wall.accounted_ns);
    if (accounted_ns == WALL_ENDED || accounted_ns <= off || !account->pending_ns)
        return;
    const uint64_t excess =
        accounted_ns - off < account->pending_ns ? accounted_ns - off : account->pending_ns;
    account->pending_ns -= excess;
    wall_give_back(&thread->wall, excess);
}

static uint64_t off_now(const struct thread_state *thread, uint64_t now,
                        const struct thread_times *times) {
    return wall_off_nano(&thread->wall, now, times->cpu_ns, times->delay_ns);
}

/* Takes up to `nano` of the time off CPU that is not recorded yet, of a thread that may be running.
 * Returns the time that it has taken. Reads the clock before the thread's times: in the reverse
 * order, CPU time that the thread uses between the two reads would count as time off CPU. In this
 * order the result is too small by that CPU time, so the helper reads both again if it was kept
 * from running in between. */
static uint64_t take_off_cpu(struct wait_sampler *waits, struct thread_state *thread,
                             struct wait_account *account, uint64_t nano) {
    enum { TRIES = 3, SHORT_NANO = 100000 };
    struct thread_times times;
    uint64_t now;
    int tries = 0;
    do {
        now = monotonic_nano();
        if (wait_thread_is_gone(thread) || !read_times(waits, thread, account, &times))
            return 0;
    } while (monotonic_nano() - now > SHORT_NANO && ++tries < TRIES);
    return wall_take_part(&thread->wall, off_now(thread, now, &times), nano);
}

void wait_reconcile(struct wait_sampler *waits, struct thread_state *thread,
                    struct wait_account *account) {
    struct thread_times times;
    const uint64_t now = monotonic_nano();
    if (!wait_thread_is_gone(thread) && clock_nano(cpu_clock_of(account->tid)) != account->cpu_ns &&
        read_times(waits, thread, account, &times)) {
        const uint64_t off = off_now(thread, now, &times);
        correct_pending(thread, account, off);
        account->last_seen_ns = now;
        account->off_cpu_at_last_seen_ns = off;
        account->cpu_ns = times.cpu_ns;
    }
    record_pending(waits, thread, account);
}

void wait_record_remainder(struct wait_sampler *waits, struct thread_state *thread,
                           struct wait_account *account) {
    const uint64_t rest = take_off_cpu(waits, thread, account, UINT64_MAX);
    if (rest)
        (void)wait_record_unseen(waits, thread, account->tid, rest);
}

void wait_observe_stop(struct wait_sampler *waits, struct thread_state *thread,
                       struct wait_account *account, uint64_t nano) {
    const uint64_t part = take_off_cpu(waits, thread, account, nano);
    if (part && !wait_record_stopped(waits, thread, account, part))
        wall_give_back(&thread->wall, part);
    if (part)
        atomic_store_explicit(&thread->wall.sampled, true, memory_order_relaxed);
}

void wait_discard(struct wait_sampler *waits, struct thread_state *thread,
                  struct wait_account *account) {
    struct thread_times times;
    account->waits = false;
    account->discards_delay = true;
    if (!wait_thread_is_gone(thread) && read_times(waits, thread, account, &times))
        (void)wall_take(&thread->wall, off_now(thread, monotonic_nano(), &times));
    account->discards_delay = false;
}

/* --- a new wait --- */

struct found {
    uint64_t sequence;
    uint32_t kind; /* the kind in the slot */
    uint64_t object;
    struct blocked_place blocked_place;
    struct blocked_call call;
    enum thread_run_state run_state;
    /* if the thread's CPU clock has not moved, the thread was in this wait then; 0: not wanted */
    uint64_t seen_nano;
};

/* Reads the slot. Returns false if the thread is just writing it. */
static bool read_slot(const struct wait_slot *slot, struct found *found) {
    /* pairs with the release store in wait_slot_begin() */
    found->sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire);
    found->blocked_place.hook = (struct hook_caller){0, 0, 0};
    if (!(found->sequence & 1))
        return true;
    found->blocked_place.hook.stack_pointer =
        atomic_load_explicit(&slot->stack_pointer, WAIT_SLOT_RELAXED);
    found->blocked_place.hook.frame_pointer =
        atomic_load_explicit(&slot->frame_pointer, WAIT_SLOT_RELAXED);
    found->blocked_place.hook.pc = atomic_load_explicit(&slot->pc, WAIT_SLOT_RELAXED);
    found->object = atomic_load_explicit(&slot->object, WAIT_SLOT_RELAXED);
    found->kind = atomic_load_explicit(&slot->kind, WAIT_SLOT_RELAXED);
    atomic_thread_fence(memory_order_acquire); /* pairs with the fence in wait_slot_write() */
    return atomic_load_explicit(&slot->sequence, WAIT_SLOT_RELAXED) == found->sequence;
}

/* Reads the system call in which the thread is blocked. Drops the slot's caller if the stack
 * pointer shows that another function makes the call. */
static void read_run_state(struct wait_sampler *waits, struct wait_account *account,
                           struct found *found) {
    struct blocked_place *const blocked_place = &found->blocked_place;
    found->run_state =
        kernel_thread_run_state(&waits->kernel, account->tid, &account->files, &found->call);
    if (found->run_state != RUN_BLOCKED)
        return;
    blocked_place->stack_pointer = found->call.stack_pointer;
    blocked_place->pc = found->call.pc;
    const uintptr_t hook = blocked_place->hook.stack_pointer;
    if (hook &&
        (blocked_place->stack_pointer >= hook || hook - blocked_place->stack_pointer > HOOK_DEPTH))
        blocked_place->hook.stack_pointer = 0;
}

/* Returns true if the thread has worked for most of the time since the last check. Without a slot
 * such a thread counts as running. */
static bool worked_since(struct wait_account *account, uint64_t now, uint64_t cpu_ns) {
    const uint64_t worked = cpu_ns - account->cpu_at_read_ns;
    const uint64_t passed = now - account->cpu_read_ns;
    const bool known = account->cpu_read_ns && cpu_ns >= account->cpu_at_read_ns;
    account->cpu_read_ns = now;
    account->cpu_at_read_ns = cpu_ns;
    return known && worked > passed / RUNS_SHARE;
}

static void describe_wait(const struct wait_sampler *waits, struct wait_account *account,
                          const struct found *found, bool hooked) {
    struct wait_detail *const detail = &account->detail;
    memset(detail, 0, sizeof *detail);
    detail->kind =
        (uint8_t)(hooked ? wait_slot_kind(found->kind) : blocked_call_kind(&found->call));
    account->holder = NULL;
    account->lock_kind = 0;
    if (hooked && detail->kind == WAIT_LOCK)
        holder_stack_begin(waits, account, found->kind, found->object);
}

static bool is_profiler_wait(const struct recorder *recorder, const struct thread_state *thread,
                             const struct found *found, struct blocked_stack *room) {
    return !room->is_in_hook && found->run_state == RUN_BLOCKED &&
           blocked_call_kind(&found->call) == WAIT_FUTEX &&
           blocked_stack_is_profiler(room, recorder->unwinder, thread, &found->blocked_place);
}

/* Walks the stack, and stores its frames and the wait in the account. Returns false if the wait has
 * ended meanwhile, or if it is unknown whether the thread waits. */
static bool observe_stack(struct wait_sampler *waits, struct thread_state *thread,
                          struct wait_account *account, struct found *found) {
    const struct recorder *const recorder = waits->recorder;
    struct blocked_stack *const room = &waits->room;
    room->frames = account->frames;
    room->max = settings_max_stack_depth(recorder->settings);
    const enum unwind_end end =
        blocked_stack_walk(room, recorder->unwinder, thread, &found->blocked_place);
    if (sequence_of(thread) != found->sequence)
        return false;
    if (found->run_state == RUN_UNKNOWN && !room->is_in_hook)
        return false;
    if (room->is_doubtful)
        thread_count_drop(thread, DROP_PYTHON);
    account->frame_count = room->count;
    account->interval = modules_interval(recorder->unwinder->modules);
    account->flags = end == UNWIND_DEPTH ? SAMPLE_FLAG_DEPTH_CUT : 0;
    if (end != UNWIND_COMPLETE && end != UNWIND_DEPTH) {
        account->flags = SAMPLE_FLAG_TRUNCATED;
        if (end == UNWIND_CHANGING)
            thread_count_drop(thread, DROP_UNLOADING);
        else
            thread_count_drop(thread, room->is_foreign ? DROP_FOREIGN_STACK : DROP_TRUNCATED);
    }
    account->flags |= room->by_frame_pointer ? SAMPLE_FLAG_FRAME_POINTERS : 0;
    account->is_hooked = room->is_in_hook && !room->in_handler;
    if (!wall_is_left(&thread->wall) && is_profiler_wait(recorder, thread, found, room)) {
        account->flags = SAMPLE_FLAG_OWN_TIME;
        account->frame_count = 0;
    }
    account->has_context = record_context_of(recorder, thread, &account->context);
    describe_wait(waits, account, found, account->is_hooked);
    return true;
}

static void begin_wait(struct thread_state *thread, struct wait_account *account,
                       const struct found *found, const struct thread_times *times, uint64_t now) {
    const bool goes_on = account->is_hooked && account->sequence == found->sequence;
    const uint64_t seen = found->seen_nano;
    account->seen = (struct span_seen){seen, seen};
    account->waits = true;
    account->sequence = found->sequence;
    account->wait_start_ns = goes_on && account->wait_start_ns ? account->wait_start_ns : now;
    account->last_seen_ns = now;
    account->off_cpu_at_last_seen_ns = off_now(thread, now, times);
    account->cpu_ns = times->cpu_ns;
    account->pending_ns += wall_take(&thread->wall, account->off_cpu_at_last_seen_ns);
    atomic_store_explicit(&thread->wall.sampled, true, memory_order_relaxed);
}

/* Removes the frame of libc's function that made the profiler's system call. */
static void leave_out_own_call(const struct wait_sampler *waits, const struct thread_state *thread,
                               struct wait_account *account, const struct found *found) {
    const struct unwinder *const unwinder = waits->recorder->unwinder;
    const struct blocked_stack *const room = &waits->room;
    if (account->frame_count < 2 || account->frames[0] != found->blocked_place.pc ||
        !blocked_stack_is_profiler(room, unwinder, thread, &found->blocked_place))
        return;
    account->frame_count--;
    memmove(account->frames, account->frames + 1, account->frame_count * sizeof *account->frames);
}

struct last_call {
    struct wait_sampler *waits;
    struct wait_account *account;
    struct found *found;
};

static bool is_out_of_program(void *context) {
    const struct last_call *const last = context;
    read_run_state(last->waits, last->account, last->found);
    return last->found->run_state != RUN_RUNNING;
}

/* Notes the stack of a thread that ends the process. The thread may not have begun its last wait
 * yet. */
static void observe_last_state(struct wait_sampler *waits, struct thread_state *thread,
                               struct wait_account *account) {
    struct found found = {.sequence = 0};
    struct thread_times times;
    if (wait_thread_is_gone(thread) || !read_slot(&thread->wait_slot, &found) ||
        !read_times(waits, thread, account, &times))
        return;
    (void)wait_for_rounds(is_out_of_program, &(struct last_call){waits, account, &found},
                          LAST_CALL_ROUNDS);
    account->is_last_state =
        found.run_state == RUN_BLOCKED && observe_stack(waits, thread, account, &found);
    if (account->is_last_state)
        leave_out_own_call(waits, thread, account, &found);
}

static bool is_in_known_call(const struct thread_state *thread,
                             const struct wait_account *account) {
    return account->waits && account->is_hooked && sequence_of(thread) == account->sequence;
}

void wait_observe(struct wait_sampler *waits, struct thread_state *thread,
                  struct wait_account *account) {
    struct found found = {.sequence = 0};
    struct thread_times times;
    if (account->pending_ns)
        wait_reconcile(waits, thread, account);
    account->is_last_state = false;
    if (wall_is_left(&thread->wall) && is_in_known_call(thread, account))
        return; /* a handler that has interrupted the call is ending the process */
    account->waits = false;
    account->seen = (struct span_seen){0, 0};
    if (wall_is_left(&thread->wall)) {
        observe_last_state(waits, thread, account);
        return;
    }
    if (wait_thread_is_gone(thread) || !read_slot(&thread->wait_slot, &found))
        return;
    const uint64_t now = monotonic_nano();
    if (!(found.sequence & 1) && worked_since(account, now, clock_nano(cpu_clock_of(account->tid))))
        return;
    /* read last, because the thread must not have worked since */
    if (!read_times(waits, thread, account, &times))
        return;
    found.seen_nano = wants_span_times(waits) ? monotonic_nano() : 0;
    read_run_state(waits, account, &found);
    if (found.run_state == RUN_RUNNING || (found.run_state == RUN_UNKNOWN && !(found.sequence & 1)))
        return;
    if (observe_stack(waits, thread, account, &found) &&
        clock_nano(cpu_clock_of(account->tid)) == times.cpu_ns)
        begin_wait(thread, account, &found, &times, monotonic_nano());
}
