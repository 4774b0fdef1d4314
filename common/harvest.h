/* Defines the one interface between the two worlds: the functions that the flush side may call on
 * the capture side.
 *
 * Capture (libotelprof.so) owns the threads' tables, the module snapshot and the helper thread. It
 * loads libotelprof-flush.so and calls its single export, otelprof_flush_main(), with this struct
 * of functions. So the preloaded object exports nothing for flush, and flush never names a symbol
 * of capture. All these functions are called on the helper thread only.
 */
#ifndef OTELPROF_HARVEST_H
#define OTELPROF_HARVEST_H

#include "arch_registers.h"
#include "config.h"
#include "drop_reason.h"
#include "frame.h"
#include "log.h"
#include "origin.h"
#include "profile_kind.h"
#include "sample_context.h"
#include "settings.h"
#include "wait_detail.h"
#include "watched_descriptor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Says how long ago a live object was allocated. AGE_UNKNOWN unless OTEL_PROFILER_HEAP_AGE is
 * set. */
enum heap_age {
    AGE_UNKNOWN,
    AGE_10_SECONDS, /* less than 10 s */
    AGE_1_MINUTE,   /* 10 s to 1 min; the other ages accordingly */
    AGE_10_MINUTES,
    AGE_1_HOUR,
    AGE_1_DAY,
    AGE_OLDER,
};

/* Lists the bits of harvest_sample.flags. */
enum {
    SAMPLE_FLAG_TRUNCATED = 1, /* the unwinder could not continue: the outer frames are missing */
    SAMPLE_FLAG_DEPTH_CUT = 2, /* the stack is deeper than OTEL_PROFILER_MAX_STACK_DEPTH */
    SAMPLE_FLAG_OWN_TIME = 4,  /* the profiler's own work; has no frames */
    /* for wait samples: the thread spends nearly all time in this wait */
    SAMPLE_FLAG_IDLE = 16,
    SAMPLE_FLAG_UNSAMPLED = 8, /* CPU time without a signal; the frames are the start routine */
    SAMPLE_FLAG_KERNEL = 64,   /* a thread that the kernel runs in the process; has no frames */
    SAMPLE_FLAG_FRAME_POINTERS = 32, /* code without unwind tables: see unwind.by_frame_pointer */
};

/* Holds the registers of the innermost frame and a copy of the stack from its stack pointer
 * upwards: with these the helper finishes a stack that the walker could not express. */
struct stack_copy {
    uint64_t registers[REGISTER_COUNT];
    uint32_t size; /* number of bytes copied, from registers[REGISTER_SP] on */
    const uint8_t *bytes;
};

/* Holds a measurement. All fields except the values, `seen` and the stack's copy are its identity.
 * Measurements of equal identity are one sample, with the sums of the values. */
struct harvest_sample {
    enum sample_kind kind;
    unsigned flags;
    /* kernel thread id; 0: the measurement is of threads that have ended, and are no longer
     * distinguished */
    uint32_t tid;
    const char *thread_name; /* "": not known */
    /* Leaf first; see frame.h. Native frames are run-time addresses: the leaf's pc, then return
     * addresses - 1 (but the pc of a frame that a signal has interrupted). */
    const uint64_t *frames;
    uint32_t frame_count;
    enum heap_age age; /* age of a SAMPLE_LIVE */
    /* interval in which `frames` were recorded: see harvest_module.first_interval */
    uint64_t interval;
    /* The context of the thread's work; NULL: not known. Only its first context_words() are
     * valid. */
    const struct sample_context *context;
    /* The times of the samples with this context, this sample included; set if the context has a
     * span and settings_values.span_times is on. Not part of the identity. */
    struct span_seen seen;
    /* The object of the wait; NULL: the kind of sample has no wait. Only its first wait_words() are
     * valid. */
    const struct wait_detail *wait;
    const char *holder_name; /* name of the thread that holds the lock; NULL, "": not known */
    /* In the kind's unit (profile_kinds.def): nanoseconds of CPU time, which are whole numbers and
     * exact up to 2^53, 104 days; or unbiased estimates of objects and bytes. */
    double values[SAMPLE_VALUES];
    /* NULL: the frames are complete; otherwise they are unfinished, see slow_unwind.h */
    const struct stack_copy *stack_copy;
};

typedef void harvest_visit(void *arg, const struct harvest_sample *sample);

/* Describes a forked child that ended before it had a helper. `pid` was certainly the id of a
 * process; the other fields are as the child itself has reported them. */
struct ended_child {
    uint32_t pid;
    uint32_t parent;
    uint64_t start_unix_nano; /* when it was forked */
    uint64_t lived_nano;      /* time from the fork to its last sample */
    uint64_t cpu_nano;        /* CPU time that counters.child_is_lost() counts */
    uint64_t interval;        /* interval of its fork: harvest_module.first_interval */
};

/* Limits a piece of work. */
struct work_budget {
    uint64_t cpu_nano; /* helper's CPU time; 0: no limit */
    size_t bytes;      /* memory beyond the memory in use */
};
typedef bool memory_guard(void (*work)(void *arg), void *arg, const struct work_budget *budget);

/* Holds a range of run-time addresses of instructions. */
struct code_range {
    uint64_t start;
    uint64_t end;
};

/* Describes an object that is loaded, or was loaded. Addresses are run-time addresses. */
struct harvest_module {
    uint64_t load_bias; /* run-time address = ELF virtual address + load_bias */
    uint64_t start;     /* first address of the object's segments, and one past the last */
    uint64_t end;
    uint64_t text_start; /* from the first executable segment to the end of the last one */
    uint64_t text_end;
    uint64_t text_file_offset; /* file offset of the first executable segment */
    uint64_t eh_frame_hdr;     /* address of PT_GNU_EH_FRAME; 0: none */
    uint64_t eh_frame_hdr_size;
    const char *path;        /* absolute path, "[vdso]", or "" when not known */
    const uint8_t *build_id; /* GNU build id; NULL: none */
    uint32_t build_id_size;
    bool unloaded; /* the memory may be unmapped: only the file can be read */
    /* Libraries may follow each other at one address. So capture numbers intervals of time, and
     * begins a new one whenever it sees objects come or go. From the first to the last interval,
     * both included, no other object was at this object's address. */
    uint64_t first_interval;
    uint64_t last_interval; /* UINT64_MAX: the object is still loaded */
};

/* Lists the reasons to return from capture_api.wait.until(). */
enum {
    REQUEST_TIMEOUT = 0,
    REQUEST_STOP = 1,    /* the process is ending: one last cycle, then return */
    REQUEST_ABANDON = 2, /* the time for the last cycle is over: return without using any library */
    REQUEST_SUSPEND = 3, /* this thread must end for a while: return FLUSH_SUSPENDED soon */
};

/* Holds facts about the peak of the live heap that its samples lack. */
struct heap_peak_facts {
    /* highest number of bytes that were ever live at once, as far as they were sampled */
    uint64_t highest_bytes;
    uint64_t unix_nano; /* when the objects behind the samples were read */
};

/* Holds the totals of the cost of sampling to the program's threads, by kind. */
enum sampling_kind { SAMPLING_CPU, SAMPLING_ALLOCATIONS, SAMPLING_LOCKS, SAMPLINGS };
struct sampling_cost {
    uint64_t cpu_nano; /* estimated from counts and measured prices: sampling_cost.h */
    uint64_t samples;
    /* unbiased estimate of the number of allocations or contentions, sampled or not */
    uint64_t objects;
    /* unbiased estimate of the bytes of these objects, or of nanoseconds of delay; 0 for CPU
     * time */
    uint64_t amount;
};

/* Declares the interface that capture passes to flush: facts that do not change, and five groups of
 * functions. */
struct capture_api {
    const struct config *config;
    const struct log *log;
    const struct origin *origin; /* set if config.exporters has EXPORTER_OTLP_FILE */
    uint64_t start_unix_nano;    /* when profiling of this process began */
    uint64_t start_nano;         /* the same moment by CLOCK_MONOTONIC */
    /* CPU time of the process until that moment: mostly before an exec */
    uint64_t start_cpu_nano;
    /* path of the program at the start, or ""; the file may be inaccessible by now */
    const char *executable;
    /* If config.config_file is set: the OTEL_* variables that made `config`, as "NAME=value", with
     * NULL at the end. NULL: there was no memory for them. */
    const char *const *variables;

    /* Groups the measurements, and facts that explain them. */
    struct {
        /* Flips the generations and visits all samples since the last call, then the live heap. A
         * sample and its pointers are valid only during its visit. Never blocks a thread of the
         * application. */
        void (*visit)(harvest_visit *visit, void *arg);
        /* Visits the samples of one forked child that ended before it had a helper, as far as they
         * were found before the last visit(). Returns false if there is none. */
        bool (*ended_child)(struct ended_child *child, harvest_visit *visit, void *arg);
        /* Returns the modules that frames of the last harvest can lie in; valid until the next
         * visit(). */
        size_t (*modules)(const struct harvest_module **modules);
        /* Names an interned frame of the last harvest's samples. Returns false if it is not
         * known. */
        bool (*name_frame)(uint64_t frame, struct named_frame *named);
        /* Returns the present mean distance between two samples, in the unit of the period:
         * nanoseconds of CPU time, or allocated bytes (this distance grows with the live heap). */
        uint64_t (*period)(enum profile_period of);
        /* Returns the facts of the last harvest's SAMPLE_HEAP_PEAK samples. */
        struct heap_peak_facts (*heap_peak)(void);
        /* Returns the kinds that are profiled at present, as PROFILE_* bits. Other kinds have no
         * data.
         */
        unsigned (*types)(void);
        /* Returns the time until `now` in which a type was sampled (settings.h). */
        struct sampled_time (*sampled)(enum profile_word type, uint64_t now);
    } harvest;

    /* Groups the life of the process and of the flush side, and the settings that change while it
     * runs. */
    struct {
        /* Reports that libcurl is initialised. `outlive_exit`: no library that the exporter uses is
         * torn down at the end of the process. Otherwise the profiler's exit handler is registered
         * once more, so that it runs before the libraries' handlers. */
        void (*libraries_ready)(bool outlive_exit);
        /* Returns whether a path still leads to the same file as when the process started: the
         * process has not changed its root or mount namespace. Flush checks this before it opens
         * any file (flush/files/by_path.h). */
        bool (*may_open_by_path)(void);
        /* Sets the values by which the process samples from now on, as far as it can apply them
         * (change_settings.h). Returns false if a change is not possible now; the caller may try
         * again. */
        bool (*change_settings)(const struct settings_values *wanted);
        /* Returns whether the program has called otelprof_stop(): then nothing is sampled, for any
         * settings. */
        bool (*is_paused)(void);
        /* Sets the level of all lines from now on. */
        void (*set_log_level)(enum log_level level);
        /* Returns the number of the last export that the program has requested (otelprof_flush); a
         * new request ends wait.until(). `exports_made` reports that all samples up to that number
         * have left the process, or were dropped. */
        uint32_t (*exports_wanted)(void);
        void (*exports_made)(uint32_t number);
        /* Returns false if no work is allowed any more: then the flush side must return at once.
         * Called before each export. */
        bool (*may_export)(void);
        /* Reports the result of an export: `responded` is false if there was no response, and that
         * was logged. If the process ends before its last export is done, that is logged, too,
         * unless the last result was false. */
        void (*endpoint_responded)(bool responded);
        /* Ends the helper for ever; `why` is logged. Afterwards return from otelprof_flush_main().
         */
        void (*give_up)(const char *why);
        /* Holds the flush side's state. The flush side sets it before it returns FLUSH_SUSPENDED.
         * When capture calls it again, on another thread, the flush side continues with this state
         * as if it had only slept. At any other start, and in a forked child, `*suspended` is
         * NULL. */
        void **suspended;
        /* Holds one object of flush's that a forked child's flush side may reuse. In the child
         * `*kept` has the parent's value if the object was consistent (the helper was in
         * wait.until() during the fork), or NULL. Capture never frees the object. */
        void **kept;
    } lifecycle;

    /* Groups the sleep, and the events that end a sleep. */
    struct {
        /* Sleeps until `deadline_nano` (CLOCK_MONOTONIC), or until there is a request; returns
         * REQUEST_*. With a deadline in the past, only checks for a request. */
        int (*until)(uint64_t deadline_nano);
        /* Polls a descriptor of the helper's own table in each until() from now on, and calls the
         * descriptor's function when the descriptor is ready; the first call may be 100 ms late.
         * Returns false if there are too many descriptors. When the thread is suspended, all
         * descriptors are dropped, and the kernel closes them. */
        bool (*watch_fd)(const struct watched_descriptor *added);
        void (*unwatch_fd)(int descriptor);
        /* Makes the until() in progress return REQUEST_TIMEOUT at once. Called from a descriptor's
         * function. */
        void (*wake)(void);
    } wait;

    /* Groups work inside a library, and the limits of that work. */
    struct {
        /* Take and release the quiesce lock, which must be held during all work inside a library
         * whose locks the application might share (libcurl, TLS). fork() and exit() close it, so
         * that a child never inherits a held lock of a library, and no library is used while it is
         * torn down. Hold the lock for at most a few milliseconds, never while sleeping.
         * lock_enter() returns false when the process is about to end: then use no library any
         * more, and return from otelprof_flush_main(). */
        bool (*lock_enter)(void);
        void (*lock_leave)(void);
        /* Returns whether a thread waits for the quiesce lock, or for the helper's end: then
         * release the lock soon. */
        bool (*lock_is_awaited)(void);
        /* Runs work(arg), which uses a library that would end the process without memory, or that
         * might run for ever on the data. Returns false if memory or the budget was used up, and
         * the work was left at some instruction; then its results must not be touched any more. */
        memory_guard *run;
        /* Returns whether the budget of CPU time is enforced: there may be no signal or no timer
         * for it. */
        bool (*is_timed)(void);
        /* Adds code in which work may be left at any instruction: code of libraries without locks.
         * The ranges must stay valid. */
        void (*allow_leaving)(const struct code_range *ranges, size_t count);
        /* Returns the free memory of the helper's heap to the kernel. Called before a sleep. */
        void (*give_back_memory)(void);
        /* Sets the bound of the memory for samples: limits leave `room` bytes; UINT64_MAX: there is
         * no limit. */
        void (*bound_memory)(uint64_t room);
    } guard;

    /* Groups totals since the process started. */
    struct {
        /* Reads the number of drops for each drop_reason. */
        void (*dropped)(uint64_t counts[DROP_REASON_COUNT]);
        /* Adds to the count of one reason, because flush counts its own losses. A lost export
         * counts as its samples. */
        void (*count_drop)(enum drop_reason reason, uint64_t count);
        /* Counts an export that a receiver or a file accepted, or that failed for ever. */
        void (*export_ended)(bool delivered);
        /* Return the number of exports that were delivered, and of exports that failed. */
        uint64_t (*exports_delivered)(void);
        uint64_t (*exports_failed)(void);
        /* Returns the helper's CPU time in nanoseconds, which is exported beside the samples. */
        uint64_t (*helper_cpu_nano)(void);
        /* Returns the CPU time of the samples that count as DROP_FOREIGN_STACK. */
        uint64_t (*foreign_stack_nano)(void);
        /* Returns the CPU time that DROP_SHORT_CHILD counts in seconds. */
        uint64_t (*short_child_nano)(void);
        /* Counts the CPU time of a child of ended_child() there: its samples are not exported. */
        void (*child_is_lost)(const struct ended_child *child);
        /* Returns the cost of sampling on the program's threads. */
        void (*sampling_cost)(struct sampling_cost costs[SAMPLINGS]);
        /* Returns the kernel's present number of the program's threads; 0: not known. */
        unsigned (*threads)(void);
    } counters;
};

/* Runs the flush side, as the only export of libotelprof-flush.so: runs cycles until wait.until()
 * requests the end. Returns 0, FLUSH_SUSPENDED, -1 if it could not start, or FLUSH_DISABLED if the
 * configuration file disables profiling, for forked children, too (the function has logged why).
 * Called on the helper thread, with all signals blocked. `api` must stay valid. */
typedef int flush_main(const struct capture_api *api);
enum { FLUSH_SUSPENDED = 1, FLUSH_DISABLED = -2 };
#define FLUSH_MAIN_SYMBOL "otelprof_flush_main"
/* Names the string by which libotelprof.so checks, before any call, that libotelprof-flush.so is of
 * the same build. */
#define FLUSH_RELEASE_SYMBOL "otelprof_flush_release"

#endif
