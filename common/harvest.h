/* The one interface between the two worlds: what the flush side may ask of the capture side.
 *
 * Capture (libotelprof.so) owns the threads' tables, the module snapshot and the helper thread; it
 * loads libotelprof-flush.so and calls its single export, otelprof_flush_main(), handing over this
 * struct of functions. So the preloaded object exports nothing for flush, and flush never names a
 * symbol of capture. Everything here is called on the helper thread only.
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

/* How long ago a live object was allocated. AGE_UNKNOWN unless OTEL_PROFILER_HEAP_AGE asks for it.
 */
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
    SAMPLE_TRUNCATED = 1, /* the unwinder could not go on: the outer frames are missing */
    SAMPLE_DEPTH_CUT = 2, /* the stack is deeper than OTEL_PROFILER_MAX_STACK_DEPTH */
    SAMPLE_OWN_TIME = 4,  /* the profiler worked: no frames */
    SAMPLE_IDLE = 16,     /* of wait samples: the thread hardly does anything else */
    SAMPLE_UNSAMPLED = 8, /* CPU time of a thread that no signal met; frames: its start routine */
    SAMPLE_FRAME_POINTERS = 32, /* code without unwind tables: see unwind.by_frame_pointer */
};

/* What the helper needs to finish a stack that the walker could not express: the registers of the
 * innermost frame and a copy of the stack from its stack pointer upwards. */
struct stack_copy {
    uint64_t registers[REGISTER_COUNT];
    uint32_t size; /* bytes copied, starting at registers[REGISTER_SP] */
    const uint8_t *bytes;
};

/* What was measured, and for whom. All but the values, `seen` and the stack's copy is the identity:
 * what is equal in it is one sample, with the sums of the values. */
struct harvest_sample {
    enum sample_kind kind;
    unsigned flags;
    uint32_t tid;            /* kernel thread id; 0: threads that have ended, told apart no more */
    const char *thread_name; /* "" = not known */
    const uint64_t *frames;  /* frame.h. Leaf first. Native ones are run-time addresses: the leaf's
                                pc as it is, then return addresses - 1 (a frame interrupted by a
                                signal: as it is) */
    uint32_t frame_count;
    enum heap_age age; /* SAMPLE_LIVE */
    uint64_t interval; /* in which `frames` were recorded: see harvest_module.first_interval */
    const struct sample_context *context; /* what the thread worked for; NULL: not known. Of it,
                                             context_words() are there */
    struct span_seen seen; /* no part of the identity: when the samples of `context` were taken of
                              which this is one, where it names a span and
                              settings_values.span_times asks for it */
    const struct wait_detail *wait; /* what it waits for; NULL: no such kind. Of it,
                                       wait_words() are there */
    const char *holder_name;        /* of the thread that holds the lock; NULL, "": not known */
    /* What the kind measures (profile_kinds.def): nanoseconds of CPU time, which are whole and
     * exact up to 2^53, 104 days; unbiased estimates of objects and bytes. */
    double values[SAMPLE_VALUES];
    const struct stack_copy *stack_copy; /* not NULL: frames are unfinished, see slow_unwind.h */
};

typedef void harvest_visit(void *arg, const struct harvest_sample *sample);

/* What a piece of work may use. */
struct work_budget {
    uint64_t cpu_nano; /* of the helper's CPU time; 0: as much as it takes */
    size_t bytes;      /* of memory beyond what there is */
};
typedef bool memory_guard(void (*work)(void *arg), void *arg, const struct work_budget *budget);

/* Run-time addresses of instructions. */
struct code_range {
    uint64_t start;
    uint64_t end;
};

/* A loaded object, or one that was unloaded. Run-time addresses. */
struct harvest_module {
    uint64_t load_bias; /* run-time address = ELF virtual address + load_bias */
    uint64_t start;     /* first and past-last run-time address of the object's segments */
    uint64_t end;
    uint64_t text_start; /* from the first executable segment to the end of the last; run-time */
    uint64_t text_end;
    uint64_t text_file_offset; /* of the first */
    uint64_t eh_frame_hdr;     /* run-time address of PT_GNU_EH_FRAME, 0 = none */
    uint64_t eh_frame_hdr_size;
    const char *path;        /* absolute path, "[vdso]", or "" when not known */
    const uint8_t *build_id; /* GNU build id, NULL = none */
    uint32_t build_id_size;
    bool unloaded; /* its memory may be gone: only the file can be read */
    /* Libraries take turns at one address. Capture numbers intervals, of which another begins
     * whenever objects are seen to come or go; in those from the first to the last, both included,
     * no unknown object was where this one is. */
    uint64_t first_interval;
    uint64_t last_interval; /* UINT64_MAX: it is there */
};

/* Reasons to return from capture_api.wait(). */
enum {
    WAIT_TIMEOUT = 0,
    WAIT_STOP = 1,    /* the process is ending: one last cycle, then return */
    WAIT_ABANDON = 2, /* the time for that is over: return without touching any library */
    WAIT_SUSPEND = 3, /* this thread is to end for a while: return FLUSH_SUSPENDED soon */
};

/* Of the live heap at its peak, beside what its samples have. */
struct heap_peak_facts {
    uint64_t highest_bytes; /* that were ever live at once, as far as they were sampled */
    uint64_t unix_nano;     /* when the objects were read that the samples stand for */
};

/* What sampling has cost the program's threads, by what is sampled; totals. */
enum sampling_kind { SAMPLING_CPU, SAMPLING_ALLOCATIONS, SAMPLING_LOCKS, SAMPLINGS };
struct sampling_cost {
    uint64_t cpu_nano; /* by counts and measured prices: sampling_cost.h */
    uint64_t samples;
    uint64_t objects; /* estimates, unbiased: allocations, or contentions, sampled or not, */
    uint64_t amount;  /* and their bytes, or nanoseconds of delay; 0 of CPU time */
};

struct capture_api {
    const struct config *config;
    const struct log *log;
    const struct origin *origin; /* known where config.exporters has EXPORTER_OTLP_FILE */
    uint64_t start_unix_nano;    /* when profiling of this process began */
    uint64_t start_nano;         /* the same moment of CLOCK_MONOTONIC */
    uint64_t start_cpu_nano;     /* CPU time of the process up to then: before an exec, mostly */
    const char *executable;      /* its path at the start, or ""; it may be out of sight since */
    /* The OTEL_* variables that `config` was made of, as "NAME=value", NULL at the end; where
     * config.config_file is set. NULL: there was no memory for them. */
    const char *const *variables;

    /* The mean distance between two samples at present, in the unit of the period: nanoseconds of
     * CPU time, or allocated bytes, which become more with the live heap. */
    uint64_t (*period)(enum profile_period of);

    /* Of the SAMPLE_HEAP_PEAK samples of the last harvest. */
    struct heap_peak_facts (*heap_peak)(void);

    /* What is profiled at present, PROFILE_* bits: of what is not nothing is known. */
    unsigned (*types)(void);

    /* Flips the generations and visits what was recorded since the last call, then the live heap.
     * A sample and all it points to is valid during its visit only. Never blocks a thread of the
     * application. */
    void (*harvest)(harvest_visit *visit, void *arg);

    /* The modules that frames of the last harvest can lie in; valid until the next harvest(). */
    size_t (*modules)(const struct harvest_module **modules);

    /* What an interned frame of the last harvest's samples stands for. false: nobody knows it. */
    bool (*name_frame)(uint64_t frame, struct named_frame *named);

    /* Totals since the start of the process, one per drop_reason; and adding to one (flush counts
     * what it loses itself: a lost export counts as its samples). */
    void (*dropped)(uint64_t counts[DROP_REASON_COUNT]);
    void (*count_drop)(enum drop_reason reason, uint64_t count);

    /* CPU time of the helper so far, nanoseconds: exported beside what the samples hold. */
    uint64_t (*own_cpu_nano)(void);

    /* And what sampling has cost on the program's threads. */
    void (*sampling_cost)(struct sampling_cost costs[SAMPLINGS]);

    /* What is sampled from now on, as far as the process can follow it (change_settings.h). false:
     * not now; it may be tried again. */
    bool (*change_settings)(const struct settings_values *wanted);
    /* The program has called otelprof_stop(): nothing is sampled, whatever the settings are. */
    bool (*is_paused)(void);
    /* Of all lines from now on. */
    void (*set_log_level)(enum log_level level);

    /* Whether a path leads to what it led to when the process started: it has not changed its root
     * or mount namespace. Asked before any file is opened (flush/files/by_path.h). */
    bool (*may_open_by_path)(void);
    /* Has the helper end for good; `why` is said. Return from otelprof_flush_main() then. */
    void (*give_up)(const char *why);

    /* The number of the last export that the program has asked for (otelprof_flush); a new one ends
     * a wait(). `exports_made`: up to that number all that was recorded has left the process, or
     * was given up. `export_ended`: of each that a receiver or a file took, or that failed for
     * good. */
    uint32_t (*exports_wanted)(void);
    void (*exports_made)(uint32_t number);
    void (*export_ended)(bool delivered);

    /* How many ended in either way so far; and the program's threads, as the kernel counts them (0:
     * it does not say). */
    uint64_t (*exports_delivered)(void);
    uint64_t (*exports_failed)(void);
    unsigned (*threads)(void);

    /* Asked before each export. false: nothing may be done any more, return at once. */
    bool (*may_export)(void);

    /* Sleeps until `deadline_nano` (CLOCK_MONOTONIC) or until the process ends: WAIT_*. A deadline
     * in the past asks without sleeping. */
    int (*wait)(uint64_t deadline_nano);
    /* Looks at a descriptor of the helper's own table in each wait() from now on, and calls `serve`
     * where it is ready; a first one may be seen 100 ms late. false: too many are looked at. They
     * are forgotten, and closed by the kernel, when the thread is suspended. */
    bool (*serve)(const struct served_descriptor *added);
    void (*serve_no_more)(int descriptor);
    /* The wait() under way returns WAIT_TIMEOUT at once. From within `serve`. */
    void (*end_wait)(void);

    /* The quiesce lock: held around every short burst of work inside a library whose locks the
     * application might share (libcurl, TLS). fork() and exit() close it for their duration, so
     * that a child never inherits such a lock held and no library is used while it is being torn
     * down. Never hold it while sleeping; at most a few milliseconds. enter returns false once the
     * process is past saving: touch nothing any more and return from otelprof_flush_main(). */
    bool (*lock_enter)(void);
    void (*lock_leave)(void);
    /* Whether somebody waits for the quiesce lock, or for the end: what is held is to be left soon.
     */
    bool (*lock_is_awaited)(void);

    /* Runs work(arg), which uses a library that does not survive without memory, or works on data
     * that may make it go on for ever. false: memory ran out, or its budget did, and the work was
     * left, wherever it was; what it had made must not be touched any more. */
    memory_guard *guarded;
    /* Whether the budget of CPU time holds: there may be no signal, or no timer, for it. */
    bool (*is_timed)(void);
    /* The code in which work may be left at any instruction: that of libraries without locks. The
     * ranges must stay. */
    void (*allow_leaving)(const struct code_range *ranges, size_t count);

    /* Gives the kernel what the helper's heap has free: before a sleep. */
    void (*give_back_memory)(void);

    /* A place for one thing of flush's that a forked child's flush side may go on with: there it is
     * what the parent's was, if that was whole (its helper was in wait() during the fork), or NULL.
     * What is left in it is never freed. */
    void **kept;

    /* Where flush leaves its state when it returns FLUSH_SUSPENDED, and finds it when it is called
     * again, on another thread: it goes on then as if it had only slept. NULL otherwise, and in a
     * forked child. */
    void **suspended;

    /* Reports how an export ended: false if nobody responded, and that was logged. If the process
     * ends before its last export is done, that is logged too, unless false came last. */
    void (*endpoint_answers)(bool answers);
    /* Told when libcurl has been initialised. `outlive_exit`: nothing that the exporter uses is
     * torn down at the end of the process. Otherwise our exit handler is registered once more, so
     * that it runs before those of the libraries. */
    void (*libraries_ready)(bool outlive_exit);
};

/* The one export of libotelprof-flush.so: runs cycles until wait() says to end. Returns 0,
 * FLUSH_SUSPENDED, -1 when it could not start, or FLUSH_DISABLED when the configuration file does
 * not let it, nor forked children (it has logged why). Called on the helper thread,
 * with all signals blocked. `api` stays where it is. */
typedef int flush_main(const struct capture_api *api);
enum { FLUSH_SUSPENDED = 1, FLUSH_DISABLED = -2 };
#define FLUSH_MAIN_SYMBOL "otelprof_flush_main"
/* And a text, by which libotelprof.so knows before it calls anything that both are of one build. */
#define FLUSH_RELEASE_SYMBOL "otelprof_flush_release"

#endif
