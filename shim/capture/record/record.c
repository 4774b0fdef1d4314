#include "record.h"

#include "arch_machine.h"
#include "charged_time.h"
#include "child_samples.h"
#include "clock.h"
#include "frames/python_stack.h"
#include "frames/python_thread.h"
#include "profiler_signal_stacks.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Fills in the registers and the range of the stack that the helper needs; the sample table copies
 * the bytes. Returns false if the stack pointer is not on the thread's own stack, or if the table
 * has its STACK_COPIES_PER_TABLE copies. */
static bool prepare_copy(const uint64_t registers[REGISTER_COUNT], const struct unwind *unwind,
                         const struct thread_state *thread, struct stack_copy *copy) {
    const uintptr_t sp = registers[REGISTER_SP];
    const uint32_t generation = atomic_load_explicit(&thread->generation, memory_order_relaxed);
    if (!stack_range_has(unwind->thread_stack, sp) ||
        thread->tables[generation].stack_copies >= STACK_COPIES_PER_TABLE)
        return false;
    const uintptr_t above = unwind->thread_stack.high - sp;
    memcpy(copy->registers, registers, sizeof copy->registers);
    copy->bytes = (const uint8_t *)sp;
    copy->size = above < STACK_COPY_BYTES ? (uint32_t)above & ~7u : STACK_COPY_BYTES;
    return true;
}

static bool record_in_table(const struct recorder *recorder, struct thread_state *thread,
                            struct sample *sample) {
    bool recorded = thread_record(recorder->threads, thread, sample);
    if (!recorded && sample->stack_copy) {
        /* tries again without a copy, because perhaps only the copy did not fit */
        sample->stack_copy = NULL;
        sample->flags |= SAMPLE_FLAG_TRUNCATED;
        recorded = thread_record(recorder->threads, thread, sample);
    }
    if (recorded)
        child_samples_add(recorder->unwinder->modules, recorder->python->functions, sample);
    return recorded;
}

/* Records the sample with its time; a sample of a wait already has the time when the wait began.
 * Out of line, because times are rarely wanted. */
__attribute__((noinline)) static bool
record_timed(const struct recorder *recorder, struct thread_state *thread, struct sample *sample) {
    const uint64_t now = monotonic_nano();
    const struct span_seen seen = {sample->seen ? sample->seen->first_nano : now, now};
    sample->seen = &seen;
    const bool added = record_in_table(recorder, thread, sample);
    sample->seen = NULL; /* clears a pointer to a variable of this function */
    return added;
}

static bool record_add(const struct recorder *recorder, struct thread_state *thread,
                       struct sample *sample) {
    const bool of_span = sample->context && context_has_span(sample->context);
    const bool added = of_span && settings_span_times(recorder->settings)
                           ? record_timed(recorder, thread, sample)
                           : record_in_table(recorder, thread, sample);
    if (added)
        thread_count_sample(thread, of_span);
    else
        thread_count_drop(thread, chunk_pool_drop_reason(&recorder->threads->pool));
    return added;
}

/* Returns the present limit of frames; the buffer has room for the configured limit. */
static uint32_t record_depth(const struct recorder *recorder) {
    return settings_max_stack_depth(recorder->settings);
}

static struct unwind record_walk_make(const struct recorder *recorder,
                                      const struct thread_state *thread,
                                      struct stack_range signal_stack) {
    return (struct unwind){.thread_stack = thread->stack,
                           .signal_stack = signal_stack,
                           .frames = thread->frames,
                           .max = record_depth(recorder),
                           .own_unloads = profiler_tls.unloads,
                           .cold = !thread->sampled};
}

static const struct sample_context *count_context(struct thread_state *thread,
                                                  enum context_outcome outcome,
                                                  const struct sample_context *context) {
    if (outcome == CONTEXT_WRONG)
        thread_count_drop(thread, DROP_CONTEXT);
    if (outcome == CONTEXT_CUT)
        thread_count_drop(thread, DROP_CONTEXT_CUT);
    return outcome == CONTEXT_READ || outcome == CONTEXT_CUT ? context : NULL;
}

/* Reads the calling thread's context. Returns NULL if it has none or it cannot be read, which is
 * counted. */
static const struct sample_context *read_current_context(const struct recorder *recorder,
                                                         struct thread_state *thread) {
    const enum context_outcome outcome =
        context_read(recorder->contexts, thread->program_context, thread->context);
    return count_context(thread, outcome, thread->context);
}

/* Reads another thread's context. Returns NULL if the thread has retired: its memory may belong to
 * another thread by now. */
const struct sample_context *record_context_of(const struct recorder *recorder,
                                               struct thread_state *thread,
                                               struct sample_context *room) {
    const struct program_context *const own =
        __atomic_load_n(&thread->program_context, __ATOMIC_RELAXED);
    const uintptr_t pointer = __atomic_load_n(&thread->pointer, __ATOMIC_RELAXED);
    if (!pointer || atomic_load(&thread->retired))
        return NULL;
    const enum context_outcome outcome = context_read_of(recorder->contexts, pointer, own, room);
    if (atomic_load(&thread->retired))
        return NULL;
    return count_context(thread, outcome, room);
}

/* Returns the range of addresses that may hold the interpreter loops of this thread: from `sp` to
 * the end of the thread's own stack. On the signal stack it is the whole own stack, because the
 * interrupted code may be anywhere on it; on any other stack it is every address from `sp` on. */
static struct stack_range loops_of(const struct unwind *unwind, uintptr_t sp) {
    const struct stack_range own = unwind->thread_stack;
    if (stack_range_has(own, sp))
        return (struct stack_range){sp, own.high};
    if (stack_range_has(unwind->signal_stack, sp))
        return own;
    return (struct stack_range){sp, UINTPTR_MAX};
}

/* Walks the stack and inserts the thread's Python frames. */
static enum unwind_end record_walk_python(const struct recorder *recorder,
                                          struct thread_state *thread,
                                          const uint64_t registers[REGISTER_COUNT],
                                          struct unwind *unwind) {
    const struct stack_range loops = loops_of(unwind, registers[REGISTER_SP]);
    struct python_stack stack = {
        .python = recorder->python,
        .reader = {.copies = python_page_sets_take(
                       recorder->python->page_sets,
                       atomic_load_explicit(&thread->tid, memory_order_relaxed))}};
    if (stack_range_has(unwind->thread_stack, loops.low))
        stack.reader.known = loops;
    const uintptr_t state =
        stack.reader.copies ? python_thread_state(recorder->python, &stack.reader) : 0;
    stack.doubts += !stack.reader.copies;
    if (state) {
        python_stack_begin(&stack, recorder->python, state, loops);
        unwind->interpreter = &stack.frames;
    }
    const enum unwind_end end = unwind_walk(recorder->unwinder, registers, unwind);
    unwind->interpreter = NULL;
    python_page_sets_give(recorder->python->page_sets, stack.reader.copies);
    if (stack.doubts)
        thread_count_drop(thread, DROP_PYTHON);
    return end;
}

static enum unwind_end record_walk(const struct recorder *recorder, struct thread_state *thread,
                                   const uint64_t registers[REGISTER_COUNT], struct unwind *unwind,
                                   struct sample *sample) {
    if (!stack_range_has(thread->stack, registers[REGISTER_SP]) && unwind->signal_stack.high == 0)
        unwind->signal_stack = profiler_signal_stacks_present(registers[REGISTER_SP]);
    enum unwind_end end;
    if (python_hold(recorder->python)) {
        end = record_walk_python(recorder, thread, registers, unwind);
        python_release(recorder->python);
    } else
        end = unwind_walk(recorder->unwinder, registers, unwind);
    sample->frames = unwind->frames;
    sample->frame_count = unwind->count;
    sample->tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    sample->interval = modules_interval(recorder->unwinder->modules);
    if (end == UNWIND_DEPTH)
        sample->flags |= SAMPLE_FLAG_DEPTH_CUT;
    if (unwind->by_frame_pointer)
        sample->flags |= SAMPLE_FLAG_FRAME_POINTERS;
    return end;
}

/* Marks and counts a stack whose walk could not continue; a stack at the limit of frames is not
 * one. Returns true if it counts as DROP_FOREIGN_STACK. */
static bool mark_cut(struct thread_state *thread, const struct unwind *unwind, enum unwind_end end,
                     struct sample *sample) {
    if (end == UNWIND_COMPLETE || end == UNWIND_DEPTH)
        return false;
    const enum drop_reason why = end == UNWIND_CHANGING  ? DROP_UNLOADING
                                 : unwind->foreign_stack ? DROP_FOREIGN_STACK
                                                         : DROP_TRUNCATED;
    sample->flags |= SAMPLE_FLAG_TRUNCATED;
    thread_count_drop(thread, why);
    return why == DROP_FOREIGN_STACK;
}

/* Drops the innermost frame, so that the sample is one of fork(). A timer that expires while fork()
 * copies the process has its signal pending until the profiler's fork handler unblocks the signal:
 * the CPU time is that of fork(). The profiler's own frames are not listed, so the innermost frame
 * is libc's function that runs fork handlers. */
static void leave_out_fork_handlers(struct sample *sample) {
    if (sample->frame_count < 2)
        return;
    sample->frames++;
    sample->frame_count--;
}

bool record_stack(const struct recorder *recorder, struct thread_state *thread,
                  const uint64_t registers[REGISTER_COUNT], struct stack_range signal_stack,
                  struct sample *sample, enum unwind_end *end) {
    struct unwind unwind = record_walk_make(recorder, thread, signal_stack);
    struct stack_copy copy;
    bool is_foreign = false;
    *end = record_walk(recorder, thread, registers, &unwind, sample);
    if (sample->kind == SAMPLE_CPU && profiler_tls.blocked_for_fork)
        leave_out_fork_handlers(sample);
    sample->context = read_current_context(recorder, thread);
    if (*end == UNWIND_EXPRESSION && prepare_copy(registers, &unwind, thread, &copy))
        sample->stack_copy = &copy;
    else
        is_foreign = mark_cut(thread, &unwind, *end, sample);
    const bool added = record_add(recorder, thread, sample);
    sample->stack_copy = NULL; /* clears a pointer to a variable of this function */
    /* a sample that was not added leaves its time to the next sample */
    if (added && is_foreign && sample->kind == SAMPLE_CPU && sample->values[MEASURED_NANO] > 0)
        atomic_fetch_add_explicit(&thread->foreign_nano, (uint64_t)sample->values[MEASURED_NANO],
                                  memory_order_relaxed);
    thread->sampled |= added;
    return added;
}

void record_frames(const struct recorder *recorder, struct thread_state *thread,
                   const uint64_t registers[REGISTER_COUNT], struct sample *sample) {
    struct unwind unwind = record_walk_make(recorder, thread, (struct stack_range){0, 0});
    (void)mark_cut(thread, &unwind, record_walk(recorder, thread, registers, &unwind, sample),
                   sample);
}

bool record_profiler_time(const struct recorder *recorder, struct thread_state *thread,
                          struct sample *sample) {
    sample->flags |= SAMPLE_FLAG_OWN_TIME;
    sample->frames = thread->frames;
    sample->frame_count = 0;
    sample->context = read_current_context(recorder, thread);
    sample->tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    const bool added = record_add(recorder, thread, sample);
    thread->sampled |= added;
    return added;
}

/* --- a thread's end --- */

static void add_remainder(const struct recorder *recorder, struct thread_state *thread,
                          uint32_t frame_count, unsigned flags) {
    const uint64_t now = charged_nano(thread, thread_cpu_nano());
    if (now <= thread->last_cpu_nano)
        return;
    const struct sample sample = {
        .kind = SAMPLE_CPU,
        .flags = (uint8_t)(flags | SAMPLE_FLAG_UNSAMPLED),
        /* threads that were too short to be sampled share one record */
        .tid = thread->sampled ? atomic_load(&thread->tid) : 0,
        .interval = modules_interval(recorder->unwinder->modules),
        .frames = thread->frames,
        .frame_count = frame_count,
        .values = {[MEASURED_NANO] = (double)(int64_t)(now - thread->last_cpu_nano)}};
    if (thread_record(recorder->threads, thread, &sample)) {
        child_samples_add(recorder->unwinder->modules, recorder->python->functions, &sample);
        thread->last_cpu_nano = now;
    } else
        thread_count_drop(thread, chunk_pool_drop_reason(&recorder->threads->pool));
}

/* Puts the start routine, which is no longer on the stack, and its callers, which still are, into
 * the thread's buffer. Returns the number of frames. */
static uint32_t walk_from_end(const struct recorder *recorder, struct thread_state *thread,
                              unsigned *flags) {
    uint64_t registers[REGISTER_COUNT];
    REGISTERS_HERE(registers);
    struct unwind unwind = {.thread_stack = thread->stack,
                            .frames = thread->frames + 1,
                            .max = record_depth(recorder) - 1,
                            .own_unloads = profiler_tls.unloads};
    const enum unwind_end end = unwind_walk(recorder->unwinder, registers, &unwind);
    thread->frames[0] = (uintptr_t)thread->start_routine;
    *flags = end == UNWIND_COMPLETE ? 0 : SAMPLE_FLAG_TRUNCATED;
    *flags |= unwind.by_frame_pointer ? SAMPLE_FLAG_FRAME_POINTERS : 0;
    return unwind.count + 1;
}

void record_remainder(const struct recorder *recorder, struct thread_state *thread) {
    unsigned flags;
    const uint32_t count = walk_from_end(recorder, thread, &flags);
    (void)thread_begin_sample(recorder->threads, thread); /* pairs with charge_take() */
    add_remainder(recorder, thread, count, flags);
    thread_end_sample(thread);
}

void record_unseen_wait(const struct recorder *recorder, struct thread_state *thread,
                        uint64_t nano) {
    const bool known = thread->sampled || atomic_load(&thread->wall.sampled);
    unsigned flags;
    const uint32_t count = walk_from_end(recorder, thread, &flags);
    const struct sample sample = {.kind = SAMPLE_OFF_CPU,
                                  .flags = (uint8_t)(flags | SAMPLE_FLAG_UNSAMPLED),
                                  .tid = known ? atomic_load(&thread->tid) : 0,
                                  .interval = modules_interval(recorder->unwinder->modules),
                                  .frames = thread->frames,
                                  .frame_count = count,
                                  .values = {[MEASURED_NANO] = (double)nano}};
    if (!thread_record(recorder->threads, thread, &sample))
        thread_count_drop(thread, chunk_pool_drop_reason(&recorder->threads->pool));
}

void record_name(const struct recorder *recorder, struct thread_state *thread) {
    uint64_t name[THREAD_NAME_WORDS] = {0};
    prctl(PR_GET_NAME, name);
    const struct sample sample = {.kind = RECORD_THREAD_NAME,
                                  .tid = atomic_load(&thread->tid),
                                  .frames = name,
                                  .frame_count = THREAD_NAME_WORDS};
    thread_record(recorder->threads, thread, &sample);
}
