/* Records samples: walks the stack and adds the sample to its thread's own table.
 *
 * The sampler and the heap decide when to record, and with which values. At a thread's end the time
 * that no sample covers is recorded. A sample that finds no memory is counted as dropped; no thread
 * ever waits for memory.
 */
#ifndef OTELPROF_RECORD_H
#define OTELPROF_RECORD_H

#include "context/context.h"
#include "frames/python.h"
#include "settings.h"
#include "thread_table.h"
#include "unwind/unwind.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Holds the objects that recording uses. The pointers are set before the first thread begins. */
struct recorder {
    struct thread_table *threads;
    const struct unwinder *unwinder;
    const struct context_reader *contexts;
    struct python *python;
    const struct settings *settings;
    /* drops that no thread's slot counts, and drops of flush */
    _Atomic uint64_t dropped[DROP_REASON_COUNT];
};

/* Unwinds from `registers` into the calling thread's buffer and records the sample. The caller sets
 * kind and values of `sample`; the call adds the frames and the context. If `signal_stack` is
 * empty, the kernel is queried for the stack when the thread is not on its own. `*end`: set to the
 * reason why the walk ended. Returns false, and counts a drop, if the sample was lost. Context:
 * any, profiler_tls.inside set. Async-signal-safe: yes. */
bool record_stack(const struct recorder *recorder, struct thread_state *thread,
                  const uint64_t registers[REGISTER_COUNT], struct stack_range signal_stack,
                  struct sample *sample, enum unwind_end *end);

/* Unwinds as record_stack() does, and adds the frames to `sample`, but neither a context nor a copy
 * of the stack, and does not record the sample. Counts a stack that was cut. Context: as
 * record_stack(). */
void record_frames(const struct recorder *recorder, struct thread_state *thread,
                   const uint64_t registers[REGISTER_COUNT], struct sample *sample);

/* Reads the present context of another thread into `*room`, and returns `room`. Returns NULL if the
 * thread has no context or has retired, or if the context cannot be read, which is counted.
 * Context: the helper. */
const struct sample_context *record_context_of(const struct recorder *recorder,
                                               struct thread_state *thread,
                                               struct sample_context *room);

/* Records a sample of code that works for the profiler (kernel/profiler_time.h), without frames.
 * Works as record_stack() otherwise. */
bool record_profiler_time(const struct recorder *recorder, struct thread_state *thread,
                          struct sample *sample);

/* Records the charged CPU time of the calling thread since its last sample. Without this record
 * totals would be too small: the kernel's tick never finds most threads that run for 2 ms. The
 * recorded stack is the start routine, which has returned, and its callers, which are still on the
 * stack. Context: the thread itself, calm, profiler_tls.inside set. */
void record_remainder(const struct recorder *recorder, struct thread_state *thread);

/* Records `nano` nanoseconds off CPU of the calling thread that no poll of the helper has found,
 * with the stack of record_remainder(). Context: as record_remainder(). */
void record_unseen_wait(const struct recorder *recorder, struct thread_state *thread,
                        uint64_t nano);

/* Records the calling thread's name for its samples: when the thread ends, the kernel forgets its
 * name. Context: the thread itself, calm, profiler_tls.inside set. */
void record_name(const struct recorder *recorder, struct thread_state *thread);

/* Counts a drop for which no thread has a counter. Context: any. Async-signal-safe: yes. */
static inline void record_drop(struct recorder *recorder, enum drop_reason reason) {
    atomic_fetch_add_explicit(&recorder->dropped[reason], 1, memory_order_relaxed);
}

#endif
