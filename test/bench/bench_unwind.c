/* The parts of one CPU sample, each beside its bounds, in one run on one core: walking a stack of
 * known depth, and adding it to the table.
 *
 * usage: bench_unwind             "DEPTH NAME NANOSECONDS FRAMES", warm, medians of turns in which
 *                                 every method has its share; then "clock NANOSECONDS", one reading
 *                                 of the thread's CPU clock
 *        bench_unwind cold NAME   "NANOSECONDS FRAMES": the first stack that this process walks
 *        bench_unwind only NAME DEPTH COUNT   that many walks, for valgrind
 * This file is compiled twice: the whole of it without frame pointers, as distributions build, and
 * its recursion alone with them (FRAME_POINTERS), for the walk that is the bound of all.
 */
#define UNW_LOCAL_ONLY
#include <stddef.h>
#include <stdint.h>

/* --- a stack of known depth --- */

typedef void bottom_function(const uintptr_t *frame);

#ifdef FRAME_POINTERS
#define DESCEND    descend_with_frame_pointers
#define FRAME_HERE __builtin_frame_address(0)
#else
#define DESCEND    descend_without
#define FRAME_HERE NULL
#endif

void descend_with_frame_pointers(int frames, bottom_function *function);
void descend_without(int frames, bottom_function *function);

static bottom_function *bottom;

#define BOTTOM() bottom(FRAME_HERE)
#include "recursion.h"

/* `function` runs below `frames` frames of this recursion. */
__attribute__((noinline)) void DESCEND(int frames, bottom_function *function) {
    static volatile uint64_t sink;
    bottom = function;
    sink = recursion(frames, sink, 2);
}

#ifndef FRAME_POINTERS
#include "arch_machine.h"
#include "clock.h"
#include "record/sample_table.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"

#include <dlfcn.h>
#include <libunwind.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

/* Counts frames outside the recursion: its bottom, DESCEND, main and libc's three before it. */
enum { MAX_FRAMES = 256, TURNS = 31, COLD_DEPTH = 30, OUTER_FRAMES = 6 };

static struct modules modules;
static struct rule_cache rules;
static _Atomic uintptr_t generated;
static struct unwinder unwinder = {.modules = &modules, .rules = &rules, .generated = &generated};
static struct stack_range thread_stack;
static struct chunk_pool pool;
static struct sample_table table;

static uint64_t frames[MAX_FRAMES];
static int depth;
static const uintptr_t *kept_frame;
/* Are the registers at the recursion's bottom: a handler gets them from the kernel. */
static uint64_t registers[REGISTER_COUNT];

/* --- the methods: each returns the number of frames --- */

static unsigned with_ours(void) {
    struct unwind walk = {.thread_stack = thread_stack, .frames = frames, .max = MAX_FRAMES};
    (void)unwind_walk(&unwinder, registers, &walk);
    return walk.count;
}

/* Adds the stack to the table after the walk: the stack is found there, and its value grows. */
static unsigned with_table(void) {
    const struct sample sample = {.kind = SAMPLE_CPU,
                                  .tid = 1,
                                  .frames = frames,
                                  .frame_count = (uint32_t)depth,
                                  .values = {[MEASURED_NANO] = 1}};
    return sample_table_add(&table, &pool, &sample) ? sample.frame_count : 0;
}

static unsigned with_unw_backtrace(void) {
    void *buffer[MAX_FRAMES];
    return (unsigned)unw_backtrace(buffer, MAX_FRAMES);
}

static unsigned with_unw_step(void) {
    unw_context_t context;
    unw_cursor_t cursor;
    unw_word_t ip;
    unsigned count = 0;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    do {
        unw_get_reg(&cursor, UNW_REG_IP, &ip);
        frames[count++] = ip;
    } while (count < MAX_FRAMES && unw_step(&cursor) > 0);
    return count;
}

/* Is found by address: libunwind exports a backtrace of its own, which would be found first. */
static int (*glibc_backtrace)(void **, int);

static unsigned with_glibc(void) {
    void *buffer[MAX_FRAMES];
    return (unsigned)glibc_backtrace(buffer, MAX_FRAMES);
}

/* Walks by frame pointers. Every read is checked, as a handler must do. The recursion's outermost
 * frame names its caller's rbp, which is no frame pointer, so the count ends the walk. */
static unsigned with_frame_pointers(void) {
    const uintptr_t *frame = kept_frame;
    unsigned count = 0;
    while (count < (unsigned)depth && (uintptr_t)frame < thread_stack.high - 16 &&
           ((uintptr_t)frame & 7) == 0) {
        frames[count++] = frame[1];
        if (frame[0] <= (uintptr_t)frame)
            break;
        frame = (const uintptr_t *)frame[0];
    }
    return count;
}

static const struct method {
    const char *name;
    unsigned (*walk)(void);
    int walks; /* walks in a turn: about as long for each method */
} methods[] = {{"ours", with_ours, 300},
               {"table", with_table, 300}, /* after ours: it adds the frames that our walk found */
               {"unw_backtrace", with_unw_backtrace, 300},
               {"unw_step", with_unw_step, 6},
               {"glibc", with_glibc, 20},
               {"frame_pointers", with_frame_pointers, 300}};
enum { METHODS = sizeof methods / sizeof *methods, FRAME_POINTER_METHOD = METHODS - 1 };

/* --- measuring --- */

static double times[METHODS][TURNS];
static unsigned counts[METHODS];
static int turn;
static const struct method *chosen;
static int wanted_walks;

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double values[TURNS]) {
    qsort(values, TURNS, sizeof *values, by_value);
    return values[TURNS / 2];
}

/* Measures; the first walk of each turn is not timed: the other methods have used the caches
 * since. */
static void measure(int method) {
    const struct method *const m = &methods[method];
    counts[method] = m->walk();
    const uint64_t start = monotonic_nano();
    for (int i = 0; i < m->walks; i++)
        (void)m->walk();
    times[method][turn] = (double)(monotonic_nano() - start) / m->walks;
}

__attribute__((noinline)) static void measure_frame_pointers(const uintptr_t *frame) {
    kept_frame = frame;
    measure(FRAME_POINTER_METHOD);
}

__attribute__((noinline)) static void measure_all(const uintptr_t *unused) {
    (void)unused;
    REGISTERS_HERE(registers);
    for (turn = 0; turn < TURNS; turn++) {
        for (int m = 0; m < FRAME_POINTER_METHOD; m++)
            measure(m);
        descend_with_frame_pointers(depth, measure_frame_pointers);
    }
    for (int m = 0; m < METHODS; m++)
        printf("%d %s %.1f %u\n", depth, methods[m].name, median(times[m]), counts[m]);
}

__attribute__((noinline)) static void measure_cold(const uintptr_t *unused) {
    (void)unused;
    REGISTERS_HERE(registers);
    const uint64_t start = monotonic_nano();
    const unsigned count = chosen->walk();
    const uint64_t end = monotonic_nano();
    printf("%llu %u\n", (unsigned long long)(end - start), count);
}

__attribute__((noinline)) static void walk_only(const uintptr_t *unused) {
    (void)unused;
    REGISTERS_HERE(registers);
    for (int i = 0; i < wanted_walks; i++)
        (void)chosen->walk();
}

static void measure_clock(void) {
    double readings[TURNS];
    for (turn = 0; turn < TURNS; turn++) {
        const uint64_t start = monotonic_nano();
        for (int i = 0; i < 300; i++)
            (void)thread_cpu_nano();
        readings[turn] = (double)(monotonic_nano() - start) / 300;
    }
    printf("clock %.1f\n", median(readings));
}

/* --- */

static const struct method *method_named(const char *name) {
    for (int m = 0; m < METHODS; m++)
        if (strcmp(methods[m].name, name) == 0)
            return &methods[m];
    return NULL;
}

static void stay_on_this_core(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    sched_setaffinity(0, sizeof set, &set);
}

static bool prepare(void) {
    void *const libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *const symbol = libc ? dlsym(libc, "backtrace") : NULL;
    memcpy(&glibc_backtrace, &symbol, sizeof symbol);
    thread_stack = (struct stack_range){4096, getauxval(AT_EXECFN) & ~7ul};
    (void)monotonic_nano(); /* the vDSO is mapped */
    stay_on_this_core();
    return symbol && modules_start(&modules);
}

int main(int argc, char **argv) {
    static const int depths[] = {10, 30, 60, 128};
    chosen = argc > 2 ? method_named(argv[2]) : NULL;
    if (!prepare() || (argc > 2 && !chosen))
        return 1;
    if (argc == 3) {
        depth = COLD_DEPTH;
        descend_without(COLD_DEPTH - OUTER_FRAMES, measure_cold);
        return 0;
    }
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
    if (argc == 5) {
        wanted_walks = atoi(argv[4]);
        depth = atoi(argv[3]);
        descend_without(depth - OUTER_FRAMES, walk_only);
        return 0;
    }
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        depth = depths[i];
        descend_without(depth - OUTER_FRAMES, measure_all);
    }
    measure_clock();
    return 0;
}
#endif
