#include "python_threads.h"

#include "clock.h"
#include "hash.h"
#include "kernel/profiler_memory.h"

#include <string.h>

enum {
    PLACES = 1024,          /* number of remembered threads, found by the thread's id */
    PROBES = 8,             /* at most so many places are tried for one id */
    MOST_INTERPRETERS = 64, /* at most so many interpreters are scanned */
    MOST_THREADS = 4096,    /* at most so many states of one interpreter are scanned */
    SCAN_SHARE = 100,
};

struct place {
    uint32_t tid;
    uintptr_t state;
};

struct python_threads {
    uint64_t next_scan; /* CLOCK_MONOTONIC */
    uint64_t heads;     /* hash of the lists' heads at the last scan; 0: a scan is due */
    struct place places[PLACES];
    struct python_pages pages;
};

struct python_threads *python_threads_new(void) {
    return profiler_memory_map(whole_pages(sizeof(struct python_threads)));
}

/* --- going through the lists --- */

struct scan {
    struct python_threads *threads;
    const struct python_offsets *offsets;
    struct python_reader reader;
    uint64_t heads;
    bool has_unbegun; /* the scan has met a state that has no thread yet */
};

static uintptr_t python_threads_word(struct scan *scan, uintptr_t object, uint32_t offset) {
    uintptr_t word;
    return python_read_word(&scan->reader, object + offset, &word) ? word : 0;
}

/* Returns true if the state runs code, or has run some. A state has no frames if its thread only
 * created the interpreter, from within another interpreter. */
static bool has_frames(struct scan *scan, uintptr_t state) {
    const struct python_offsets *const o = scan->offsets;
    const uintptr_t first =
        python_threads_word(scan, state, o->cframe ? o->cframe : o->current_frame);
    return o->cframe && first ? python_threads_word(scan, first, o->cframe_frame) != 0 : first != 0;
}

/* Returns the thread's place, or a place for it: a free one, if one of PROBES places is free. */
static struct place *python_threads_place(const struct scan *scan, uint32_t tid) {
    struct place *const places = scan->threads->places;
    struct place *free = &places[tid % PLACES];
    for (uint32_t i = 0; i < PROBES; i++) {
        struct place *const place = &places[(tid + i) % PLACES];
        if (place->tid == tid)
            return place;
        if (!place->tid && free->tid)
            free = place;
    }
    return free;
}

static void note_all(struct scan *scan, uintptr_t state) {
    for (int i = 0; i < MOST_THREADS && state; i++) {
        const uint32_t tid =
            (uint32_t)python_threads_word(scan, state, scan->offsets->native_thread_id);
        struct place *const place = python_threads_place(scan, tid);
        scan->has_unbegun |= !tid;
        if (tid && (place->tid != tid || !has_frames(scan, place->state)))
            /* new interpreters precede older ones in the list */
            *place = (struct place){tid, state};
        state = python_threads_word(scan, state, scan->offsets->thread_next);
    }
}

/* Hashes the head of a list of states. New states are inserted at the head, so an equal hash means
 * no new state. */
static void hash_head(struct scan *scan, uintptr_t state) {
    scan->heads = hash_word(scan->heads, state);
    if (state)
        scan->heads = hash_word(scan->heads,
                                python_threads_word(scan, state, scan->offsets->native_thread_id));
}

static void for_each_interpreter(struct scan *scan, uintptr_t runtime,
                                 void (*work)(struct scan *scan, uintptr_t state)) {
    uintptr_t interpreter = python_threads_word(scan, runtime, scan->offsets->interpreters_head);
    for (int i = 0; i < MOST_INTERPRETERS && interpreter; i++) {
        work(scan, python_threads_word(scan, interpreter, scan->offsets->threads_head));
        interpreter = python_threads_word(scan, interpreter, scan->offsets->interpreter_next);
    }
}

static void scan_if_new(struct scan *scan, uintptr_t runtime) {
    struct python_threads *const threads = scan->threads;
    const uint64_t now = monotonic_nano();
    if (now < threads->next_scan)
        return;
    const uint64_t before = thread_cpu_nano();
    for_each_interpreter(scan, runtime, hash_head);
    if (scan->heads != threads->heads) {
        memset(threads->places, 0, sizeof threads->places);
        for_each_interpreter(scan, runtime, note_all);
        threads->heads = scan->has_unbegun ? 0 : scan->heads;
    }
    threads->next_scan = now + (thread_cpu_nano() - before) * SCAN_SHARE;
}

/* --- finding a state --- */

static uintptr_t python_threads_known_state(struct scan *scan, uint32_t tid) {
    const struct place *const place = python_threads_place(scan, tid);
    if (place->tid != tid ||
        python_threads_word(scan, place->state, scan->offsets->native_thread_id) != tid ||
        !has_frames(scan, place->state))
        return 0;
    return place->state;
}

uintptr_t python_threads_find(struct python_threads *threads, const struct python *python,
                              uint32_t tid) {
    struct scan scan = {.threads = threads,
                        .offsets = &python->offsets,
                        .reader = {.of_another = true},
                        .heads = 1};
    const uintptr_t state = python_threads_known_state(&scan, tid);
    if (state)
        return state;
    scan_if_new(&scan, python->runtime);
    return python_threads_known_state(&scan, tid);
}

struct python_pages *python_threads_pages(struct python_threads *threads) {
    python_pages_forget(&threads->pages);
    return &threads->pages;
}
