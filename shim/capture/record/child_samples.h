/* Keeps the samples of forked children that have no helper yet where an ancestor's helper can read
 * them: a child that ends before it has a helper would lose them with its memory.
 *
 * The helper of a process maps memory that the process's children share. It has CHILD_SLOTS slots.
 * At its first sample a child takes a slot, and from then on writes each sample of CPU time or of
 * an allocation to its slot, too. When the child's own helper makes its first harvest, the child
 * gives the slot back. When a child has ended that still has a slot, the helper of the process that
 * mapped the memory reads the slot, exports the samples under the child's process id, and frees it.
 * A fork alone touches no page of this memory.
 *
 * A child may give up rights that its parent and its siblings keep, and may write anything there.
 * So a child reads only the slots' owners in this memory: all other data that it needs is in its
 * own memory. The reader copies a slot before it checks it, and believes nothing of the copy but
 * numbers and addresses within bounds. Slots have no contexts and labels, because these may be
 * secrets, which all the children could read.
 */
#ifndef OTELPROF_CHILD_SAMPLES_H
#define OTELPROF_CHILD_SAMPLES_H

#include "frames/python_functions.h"
#include "harvest.h"
#include "sample_table.h"
#include "unwind/modules.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    CHILD_SLOTS = 32, /* most children at a time that have no helper and have used CPU time */
    /* samples of a slot: some 140 stacks of 50 frames */
    CHILD_SLOT_BYTES = 1 << 16,
};

/* Lists the states of a slot. */
enum child_slot_state {
    CHILD_SLOT_FREE,
    CHILD_SLOT_USED,     /* the child writes to it */
    CHILD_SLOT_RELEASED, /* it must not be exported, and is freed when the child has ended */
    CHILD_SLOT_ENDED,    /* the child has ended, and the helper reads it */
};

/* Heads a slot. */
struct child_slot {
    _Atomic uint64_t owner;      /* process id << 32 | enum child_slot_state; 0: the slot is free */
    _Atomic uint64_t start_nano; /* CLOCK_MONOTONIC: when the child was forked; 0: not known yet */
    _Atomic uint64_t start_unix_nano;
    _Atomic uint64_t lived_nano; /* time from the fork to the last sample */
    _Atomic uint64_t cpu_nano;   /* CPU time of all samples in the slot */
    _Atomic uint64_t interval;   /* modules' interval of the fork: harvest_module */
    _Atomic uint32_t parent;     /* process id of the child's parent */
    _Atomic uint32_t used;       /* bytes of records */
    uint64_t unused;
};

/* Describes the layout of the shared memory. */
struct child_slots {
    struct child_slot heads[CHILD_SLOTS];
    _Alignas(4096) uint8_t records[CHILD_SLOTS][CHILD_SLOT_BYTES];
};

/* Describes a child, at its fork. */
struct forked_child {
    uint32_t pid;
    uint32_t parent;
    uint64_t start_nano; /* CLOCK_MONOTONIC */
    uint64_t start_unix_nano;
    /* number of the modules' interval; a child of a child keeps the one that its ancestor knows */
    uint64_t interval;
};

extern _Atomic bool child_samples_wanted;

/* Maps the memory, for children that are forked from now on, unless this process has done so. If
 * the kernel refuses, these children get no slot. Unmaps memory inherited from further above.
 * Context: the helper. */
void child_samples_share(void);

/* Returns true if this process's children may get a slot. Context: any. */
bool child_samples_can_be_kept(void);

/* Resets the state in a forked child. NULL: neither the child nor its children get a slot of an
 * ancestor's memory. Context: fork handler. */
void child_samples_after_fork(const struct forked_child *child);

/* Writes the sample to the child's slot. A sample is not written if it finds no slot or no room, if
 * it is neither of CPU time nor of an allocation, or if another thread is writing. `functions`: of
 * the interpreter; NULL: there is none. Cost: 0.1 to 0.3 µs; for a new stack some µs for each
 * function of Python that is new in it. Context: as sample_table_add(). Async-signal-safe: yes. */
void child_samples_write(const struct modules *objects, struct python_functions *functions,
                         const struct sample *sample);

/* Calls child_samples_write() in a child that has no helper yet. */
static inline void child_samples_add(const struct modules *objects,
                                     struct python_functions *functions,
                                     const struct sample *sample) {
    if (atomic_load_explicit(&child_samples_wanted, memory_order_relaxed))
        child_samples_write(objects, functions, sample);
}

/* Gives the slot back: this process's own helper exports all samples. Context: the helper. */
void child_samples_release(void);

/* Returns the CPU time of the samples in this process's slot, in nanoseconds. Context: any. */
uint64_t child_samples_nano(void);

/* --- the reader --- */

/* Marks the slots of children that have ended; frees those that were released. Returns the CPU time
 * of the samples in the slots that this call has marked, in nanoseconds, as the children report it.
 * has_ended() gets `start_nano` 0 if the child's start is not known. Context: the helper. */
uint64_t child_samples_find_ended(bool (*has_ended)(uint32_t pid, uint64_t start_nano));

/* Returns true if child_samples_take() would find a child that has ended. Context: the helper. */
bool child_samples_are_there(void);

/* Holds the copy of a slot. */
struct child_copy {
    uint8_t *records; /* CHILD_SLOT_BYTES, at a multiple of 8 */
    uint32_t used;
};

/* Visits the samples of one child that has ended, and frees its slot. First copies slot i to
 * `copies[i]`, one of CHILD_SLOTS copies: the frames of the samples refer to this copy by its
 * number. Returns false if there is no such child. Context: the helper. */
bool child_samples_take(struct child_copy *copies, struct ended_child *child,
                        void (*visit)(void *arg, const struct sample *sample), void *arg);

/* Visits the samples of a copy, which may have any bytes; stops at the first invalid record.
 * Changes the frames in the copy, so that they refer to copy `number`. Context: any. */
void child_samples_read(struct child_copy *copy, uint32_t number, uint64_t interval,
                        void (*visit)(void *arg, const struct sample *sample), void *arg);

/* Names a frame that child_samples_read() has made. Returns false if the copy has no name there.
 * The strings are valid until the next call. Context: the helper. */
bool child_samples_name(const struct child_copy *copies, uint64_t frame, struct named_frame *named);

#endif
