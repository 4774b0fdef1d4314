/* Defines the one interface between the two worlds: the functions that the flush side may call on
 * the capture side.
 *
 * Capture (libotelprof.so) owns the threads' tables, the module snapshot and the helper thread. It
 * loads libotelprof-flush.so and calls its single export, otelprof_flush_main(), with this struct
 * of functions. So the preloaded object exports nothing for flush, and flush never names a symbol
 * of capture. Everything here is called on the helper thread only.
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
#include "served_descriptor.h"
#include "settings.h"
#include "wait_detail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The time since a live object was allocated. AGE_UNKNOWN unless OTEL_PROFILER_HEAP_AGE is set. */
enum heap_age {
    AGE_UNKNOWN,
    AGE_10_SECONDS, /* less than 10 s */
    AGE_1_MINUTE,   /* 10 s to 1 min, and so on */
    AGE_10_MINUTES,
    AGE_1_HOUR,
    AGE_1_DAY,
    AGE_OLDER,
};

/* Bits of harvest_sample.flags. */
enum {
    SAMPLE_FLAG_TRUNCATED = 1, /* the unwinder could not go on: the outer frames are missing */
    SAMPLE_FLAG_DEPTH_CUT = 2, /* the stack is deeper than OTEL_PROFILER_MAX_STACK_DEPTH */
    SAMPLE_FLAG_OWN_TIME = 4,  /* the profiler's own work: no frames */
    SAMPLE_FLAG_IDLE = 16,     /* of wait samples: the thread hardly does anything else */
    SAMPLE_FLAG_UNSAMPLED = 8, /* CPU time without a signal; frames: the start routine */
    SAMPLE_FLAG_KERNEL = 64,   /* a thread that the kernel runs in the process: no frames */
    SAMPLE_FLAG_FRAME_POINTERS = 32, /* code without unwind tables: see unwind.by_frame_pointer */
};

/* The helper needs this to finish a stack that the walker could not express: the registers of the
 * innermost frame and a copy of the stack from its stack pointer upwards. */
struct stack_copy {
    uint64_t registers[REGISTER_COUNT];
    uint32_t size; /* bytes copied, starting at registers[REGISTER_SP] */
    const uint8_t *bytes;
};

/* A measurement, and its identity: everything except the values, `seen` and the stack's copy.
 * Measurements of equal identity are one sample, with the sums of the values. */
struct harvest_sample {
    enum sample_kind kind;
    unsigned flags;
    uint32_t tid; /* kernel thread id; 0: threads that have ended, no longer distinguished */
    const char *thread_name; /* "" = not known */
    /* See frame.h. Leaf first. Native ones are run-time addresses: the leaf's pc as it is, then
     * return addresses - 1 (a frame interrupted by a signal: as it is). */
    const uint64_t *frames;
    uint32_t frame_count;
    enum heap_age age; /* SAMPLE_LIVE */
    uint64_t interval; /* in which `frames` were recorded: see harvest_module.first_interval */
    /* The context of the thread's work; NULL: not known. Only context_words() of it are there. */
    const struct sample_context *context;
    /* No part of the identity: when samples of `context`, this one among them, were taken, if it
     * names a span and settings_values.span_times is set. */
    struct span_seen seen;
    /* The object of the wait; NULL: the kind has none. Only wait_words() of it are there. */
    const struct wait_detail *wait;
    const char *holder_name; /* of the thread that holds the lock; NULL, "": not known */
    /* Measured in the kind's unit (profile_kinds.def): nanoseconds of CPU time, which are whole and
     * exact up to 2^53, 104 days; unbiased estimates of objects and bytes. */
    double values[SAMPLE_VALUES];
    const struct stack_copy *stack_copy; /* not NULL: frames are unfinished, see slow_unwind.h */
};

typedef void harvest_visit(void *arg, const struct harvest_sample *sample);

/* Limits of a piece of work. */
struct work_budget {
    uint64_t cpu_nano; /* of the helper's CPU time; 0: no limit */
    size_t bytes;      /* of memory beyond what is in use */
};
typedef bool memory_guard(void (*work)(void *arg), void *arg, const struct work_budget *budget);

/* A range of run-time addresses of instructions. */
struct code_range {
    uint64_t start;
    uint64_t end;
};

/* An object that is loaded, or was. Run-time addresses. */
struct harvest_module {
    uint64_t load_bias; /* run-time address = ELF virtual address + load_bias */
    uint64_t start;     /* first and past-last run-time address of the object's segments */
    uint64_t end;
    uint64_t text_start; /* from the first executable segment to the end of the last; run-time */
    uint64_t text_end;
    uint64_t text_file_offset; /* of the first executable segment */
    uint64_t eh_frame_hdr;     /* run-time address of PT_GNU_EH_FRAME, 0 = none */
    uint64_t eh_frame_hdr_size;
    const char *path;        /* absolute path, "[vdso]", or "" when not known */
    const uint8_t *build_id; /* GNU build id, NULL = none */
    uint32_t build_id_size;
    bool unloaded; /* its memory may be gone: only the file can be read */
    /* Libraries may follow each other at one address. Capture numbers intervals, and begins another
     * whenever it sees objects come or go. During the intervals from the first to the last, both
     * included, no other object was at this one's place. */
    uint64_t first_interval;
    uint64_t last_interval; /* UINT64_MAX: it is still loaded */
};

/* Reasons to return from capture_api.wait.until(). */
enum {
    REQUEST_TIMEOUT = 0,
    REQUEST_STOP = 1,    /* the process is ending: one last cycle, then return */
    REQUEST_ABANDON = 2, /* the time for that is over: return without using any library */
    REQUEST_SUSPEND = 3, /* this thread is to end for a while: return FLUSH_SUSPENDED soon */
};

/* Facts about the peak of the live heap that its samples lack. */
struct heap_peak_facts {
    uint64_t highest_bytes; /* the most bytes ever live at once, as far as they were sampled */
    uint64_t unix_nano;     /* when the objects behind the samples were read */
};

/* The cost of sampling to the program's threads, by kind; totals. */
enum sampling_kind { SAMPLING_CPU, SAMPLING_ALLOCATIONS, SAMPLING_LOCKS, SAMPLINGS };
struct sampling_cost {
    uint64_t cpu_nano; /* from counts and measured prices: sampling_cost.h */
    uint64_t samples;
    uint64_t objects; /* unbiased estimates of allocations or contentions, sampled or not, */
    uint64_t amount;  /* and of their bytes, or nanoseconds of delay; 0 of CPU time */
};

/* The capture side gives this to flush: facts that do not change, and five groups of functions. */
struct capture_api {
    const struct config *config;
    const struct log *log;
    const struct origin *origin; /* known if config.exporters has EXPORTER_OTLP_FILE */
    uint64_t start_unix_nano;    /* when profiling of this process began */
    uint64_t start_nano;         /* the same moment of CLOCK_MONOTONIC */
    uint64_t start_cpu_nano;     /* CPU time of the process until then: mostly before an exec */
    const char *executable;      /* its path at the start, or ""; it may be out of reach since */
    /* The OTEL_* variables behind `config`, as "NAME=value", NULL at the end, if config.config_file
     * is set. NULL: there was no memory for them. */
    const char *const *variables;

    /* The measurements, and the facts that explain them. */
    struct {
        /* Flips the generations and visits everything recorded since the last call, then the live
         * heap. A sample and its pointers are valid during its visit only. Never blocks a thread of
         * the application. */
        void (*visit)(harvest_visit *visit, void *arg);
        /* Returns the modules that frames of the last harvest can lie in; valid until the next
         * visit(). */
        size_t (*modules)(const struct harvest_module **modules);
        /* Names an interned frame of the last harvest's samples. false: it is not known. */
        bool (*name_frame)(uint64_t frame, struct named_frame *named);
        /* Returns the present mean distance between two samples, in the unit of the period:
         * nanoseconds of CPU time, or allocated bytes, which grow with the live heap. */
        uint64_t (*period)(enum profile_period of);
        /* Returns the facts of the last harvest's SAMPLE_HEAP_PEAK samples. */
        struct heap_peak_facts (*heap_peak)(void);
        /* Returns the kinds that are profiled at present, PROFILE_* bits. The others have no data.
         */
        unsigned (*types)(void);
    } harvest;

    /* The life of the process and of the flush side, and the settings that change meanwhile. */
    struct {
        /* Called when libcurl has been initialised. `outlive_exit`: nothing that the exporter uses
         * is torn down at the end of the process. Otherwise the profiler's exit handler is
         * registered once more, so that it runs before those of the libraries. */
        void (*libraries_ready)(bool outlive_exit);
        /* Returns whether a path still means what it meant when the process started: the process
         * has not changed its root or mount namespace. Checked before any file is opened
         * (flush/files/by_path.h). */
        bool (*may_open_by_path)(void);
        /* Sets what is sampled from now on, as far as the process can follow it
         * (change_settings.h). false: not now; the caller may try again. */
        bool (*change_settings)(const struct settings_values *wanted);
        /* Returns whether the program has called otelprof_stop(): nothing is sampled then, whatever
         * the settings. */
        bool (*is_paused)(void);
        /* Sets the level of all lines from now on. */
        void (*set_log_level)(enum log_level level);
        /* Returns the number of the last export that the program has requested (otelprof_flush); a
         * new request ends wait.until(). `exports_made`: everything recorded up to that number has
         * left the process, or was dropped. */
        uint32_t (*exports_wanted)(void);
        void (*exports_made)(uint32_t number);
        /* Checked before each export. false: no work is allowed any more, return at once. */
        bool (*may_export)(void);
        /* Reports the result of an export: false if there was no response, and that was logged. If
         * the process ends before its last export is done, that is logged too, unless the last
         * result was false. */
        void (*endpoint_responded)(bool responded);
        /* Makes the helper end for good; `why` is logged. Return from otelprof_flush_main() then.
         */
        void (*give_up)(const char *why);
        /* Holds the flush side's state. The flush side sets it before it returns FLUSH_SUSPENDED.
         * When it is called again, on another thread, it continues from there as if it had only
         * slept. `*suspended` is NULL at any other start, and in a forked child. */
        void **suspended;
        /* A place for one object of flush's that a forked child's flush side may reuse. In the
         * child it holds the parent's value if that was consistent (its helper was in wait.until()
         * during the fork), or NULL. An object that is left in it is never freed. */
        void **kept;
    } lifecycle;

    /* Sleep, and the events that end it. */
    struct {
        /* Sleeps until `deadline_nano` (CLOCK_MONOTONIC) or until the process ends: REQUEST_*. With
         * a deadline in the past it checks without sleeping. */
        int (*until)(uint64_t deadline_nano);
        /* Polls a descriptor of the helper's own table in each until() from now on, and calls its
         * function when it is ready; the first time may be 100 ms late. false: there are too many.
         * When the thread is suspended, they are forgotten and the kernel closes them. */
        bool (*watch_fd)(const struct served_descriptor *added);
        void (*unwatch_fd)(int descriptor);
        /* The until() in progress returns REQUEST_TIMEOUT at once. Called from a descriptor's
         * function. */
        void (*wake)(void);
    } wait;

    /* Work inside a library, and its limits. */
    struct {
        /* The quiesce lock: held around every short burst of work inside a library whose locks the
         * application might share (libcurl, TLS). fork() and exit() close it for their duration, so
         * that a child never inherits such a lock held and no library is used while it is being
         * torn down. Never hold it while sleeping; at most a few milliseconds. enter returns false
         * once the process is about to end: use nothing any more and return from
         * otelprof_flush_main(). */
        bool (*lock_enter)(void);
        void (*lock_leave)(void);
        /* Returns whether a thread waits for the quiesce lock, or for the end: release it soon. */
        bool (*lock_is_awaited)(void);
        /* Runs work(arg), which uses a library that does not survive without memory, or works on
         * data that may make it run for ever. false: memory ran out, or its budget did, and the
         * work was left at some instruction; its results must not be touched any more. */
        memory_guard *run;
        /* Returns whether the budget of CPU time is enforced: there may be no signal, or no timer,
         * for it. */
        bool (*is_timed)(void);
        /* Adds code in which work may be left at any instruction: that of libraries without locks.
         * The ranges must stay. */
        void (*allow_leaving)(const struct code_range *ranges, size_t count);
        /* Returns the free memory of the helper's heap to the kernel: before a sleep. */
        void (*give_back_memory)(void);
        /* Bounds the memory of samples: limits leave `room` bytes; UINT64_MAX: there is none. */
        void (*bound_memory)(uint64_t room);
    } guard;

    /* Totals since the start of the process. */
    struct {
        /* Reads those of each drop_reason. */
        void (*dropped)(uint64_t counts[DROP_REASON_COUNT]);
        /* Adds to one: flush counts its own losses. A lost export counts as its samples. */
        void (*count_drop)(enum drop_reason reason, uint64_t count);
        /* Counts an export that a receiver or a file accepted, or that failed for good. */
        void (*export_ended)(bool delivered);
        /* Return how many exports ended in either way. */
        uint64_t (*exports_delivered)(void);
        uint64_t (*exports_failed)(void);
        /* Returns the helper's CPU time, in nanoseconds, which is exported beside the samples. */
        uint64_t (*helper_cpu_nano)(void);
        /* Returns the CPU time of the samples that count as DROP_FOREIGN_STACK. */
        uint64_t (*foreign_stack_nano)(void);
        /* Returns the cost of sampling on the program's threads. */
        void (*sampling_cost)(struct sampling_cost costs[SAMPLINGS]);
        /* Returns the present number of the program's threads, from the kernel (0: not known). */
        unsigned (*threads)(void);
    } counters;
};

/* The one export of libotelprof-flush.so: runs cycles until wait.until() requests the end. Returns
 * 0, FLUSH_SUSPENDED, -1 when it could not start, or FLUSH_DISABLED when the configuration file
 * disables it, for forked children, too (it has logged why). Called on the helper thread, with all
 * signals blocked. `api` stays where it is. */
typedef int flush_main(const struct capture_api *api);
enum { FLUSH_SUSPENDED = 1, FLUSH_DISABLED = -2 };
#define FLUSH_MAIN_SYMBOL "otelprof_flush_main"
/* A string that lets libotelprof.so check, before it calls anything, that libotelprof-flush.so is
 * of the same build. */
#define FLUSH_RELEASE_SYMBOL "otelprof_flush_release"

#endif
