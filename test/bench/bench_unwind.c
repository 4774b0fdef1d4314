/* What a stack costs to unwind: our walker beside libunwind, glibc and frame pointers, in one run.
 *
 * usage: bench_unwind             warm: "DEPTH NAME NANOSECONDS" for each, a median
 *        bench_unwind cold NAME   the first stack of this process, of 30 frames
 */
#define UNW_LOCAL_ONLY
#include "arch/x86_64.h"
#include "modules.h"
#include "unwind.h"

#include <dlfcn.h>
#include <libunwind.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

enum { MAX_FRAMES = 256, REPEATS = 31, WALKS = 300, COLD_DEPTH = 30, OUTER_FRAMES = 5 };

static struct modules modules;
static struct rule_cache rules;
static _Atomic uintptr_t generated;
static struct unwinder unwinder = {.modules = &modules, .rules = &rules, .generated = &generated};
static struct stack_range thread_stack;
static uint64_t frames[MAX_FRAMES];
static volatile uint64_t sink;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- the unwinders: each returns the number of frames --- */

static unsigned with_ours(void) {
    uint64_t registers[REGISTER_COUNT];
    struct unwind walk = {.thread_stack = thread_stack, .frames = frames, .max = MAX_FRAMES};
    REGISTERS_HERE(registers);
    (void)unwind_walk(&unwinder, registers, &walk);
    return walk.count;
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

/* libunwind exports a backtrace of its own, which would be found first. */
static int (*glibc_backtrace)(void **, int);

static unsigned with_glibc(void) {
    void *buffer[MAX_FRAMES];
    return (unsigned)glibc_backtrace(buffer, MAX_FRAMES);
}

/* The bound, for code that keeps frame pointers. */
static unsigned with_frame_pointers(void) {
    const uintptr_t *frame = __builtin_frame_address(0);
    unsigned count = 0;
    while (count < MAX_FRAMES && (uintptr_t)frame < thread_stack.high - 16 && frame[1]) {
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
} methods[] = {{"ours", with_ours},
               {"unw_backtrace", with_unw_backtrace},
               {"unw_step", with_unw_step},
               {"glibc", with_glibc},
               {"frame_pointers", with_frame_pointers}};
enum { METHODS = sizeof methods / sizeof *methods };

/* --- a stack of known depth, of functions with frames of several sizes --- */

typedef void bottom_function(int depth);
static bottom_function *bottom;
static int wanted;

#define FUNCTION(name, bytes, next)                                                                \
    static void next(int depth);                                                                   \
    __attribute__((noinline)) static void name(int depth) {                                        \
        volatile char room[bytes];                                                                 \
        room[0] = (char)depth;                                                                     \
        if (depth == 0)                                                                            \
            bottom(wanted);                                                                        \
        else                                                                                       \
            next(depth - 1);                                                                       \
        sink += (uint64_t)room[0];                                                                 \
    }
FUNCTION(first, 24, second)
FUNCTION(second, 200, third)
FUNCTION(third, 56, fourth)
FUNCTION(fourth, 600, first)

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

__attribute__((noinline)) static void measure_all(int depth) {
    double times[METHODS][REPEATS];
    unsigned counts[METHODS];
    for (int repeat = 0; repeat < REPEATS; repeat++)
        for (int m = 0; m < METHODS; m++) {
            const int walks = m == 2 ? WALKS / 10 : WALKS; /* the slow one */
            const uint64_t start = now();
            for (int i = 0; i < walks; i++)
                counts[m] = methods[m].walk();
            times[m][repeat] = (double)(now() - start) / walks;
        }
    for (int m = 0; m < METHODS; m++) {
        qsort(times[m], REPEATS, sizeof times[m][0], by_value);
        printf("%d %s %.1f %u\n", depth, methods[m].name, times[m][REPEATS / 2], counts[m]);
    }
}

static const struct method *cold_method;

__attribute__((noinline)) static void measure_cold(int depth) {
    (void)depth;
    const uint64_t start = now();
    sink = cold_method->walk();
    const uint64_t end = now();
    printf("%llu\n", (unsigned long long)(end - start));
}

static void descend(int depth, bottom_function *function) {
    bottom = function;
    wanted = depth;
    first(depth - OUTER_FRAMES - 1);
}

static void stay_on_this_core(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv) {
    static const int depths[] = {10, 30, 60, 128};
    void *const libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *const symbol = dlsym(libc, "backtrace");
    memcpy(&glibc_backtrace, &symbol, sizeof symbol);
    thread_stack = (struct stack_range){4096, getauxval(AT_EXECFN) & ~7ul};
    stay_on_this_core();
    if (!modules_start(&modules))
        return 1;
    for (int m = 0; argc == 3 && m < METHODS; m++)
        if (strcmp(methods[m].name, argv[2]) == 0) {
            cold_method = &methods[m];
            descend(COLD_DEPTH, measure_cold);
        }
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
    for (size_t i = 0; argc == 1 && i < sizeof depths / sizeof *depths; i++)
        descend(depths[i], measure_all);
    return 0;
}
