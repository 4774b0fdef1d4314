/* What one CPU sample costs from signal to return, under whatever profiler is preloaded, and how
 * much of the interrupted stack it takes.
 *
 * usage: bench_signal
 *            "DEPTH sample NANOSECONDS" and "DEPTH empty NANOSECONDS" (a handler that does nothing:
 *            the bound), warm, medians of turns; then "stack BYTES" below the interrupted rsp and
 *            "alternate BYTES" of an alternate stack that one sample used, the kernel's own frame
 *            included, and "stack_frame BYTES" and "frame BYTES", that frame alone
 *        bench_signal first
 *            "30 first NANOSECONDS", "30 faults COUNT", "30 second NANOSECONDS": the first two
 *            samples of this process, and the pages that the first had mapped; then "30 empty ..."
 *        bench_signal count N
 *            "sent N": so many samples, of the kind that can be counted
 *
 * libotelprof's samples are asked for by a signal that looks like its timer's: it carries the
 * address of the sampler, found in the library's symbol table. Other profilers take any
 * SIGPROF. To be counted a signal says that it stands for one more: libotelprof adds that up where
 * it takes the sample, and exports it as otelprof.dropped.overrun.
 */
/* flags: -lelf */
#define _GNU_SOURCE
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* Counts frames outside the recursion: syscall(), send(), measure(), measure_warm(), descend(),
 * main() and libc's three before it. */
enum {
    REPEATS = 31,
    SIGNALS = 300,
    FIRST_DEPTH = 30,
    OUTER_FRAMES = 9,
    PAINTED = 64 << 10,
    PAINT = 0xa5
};

static volatile uint64_t sink;
static void *state; /* of libotelprof; NULL: not loaded */

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- finding the profiler's state --- */

static uint64_t symbol_in(Elf *elf, const char *wanted) {
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    GElf_Sym symbol;
    while ((section = elf_nextscn(elf, section)) && gelf_getshdr(section, &header)) {
        Elf_Data *const data = header.sh_type == SHT_SYMTAB ? elf_getdata(section, NULL) : NULL;
        for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
            const char *const name = elf_strptr(elf, header.sh_link, symbol.st_name);
            if (name && strcmp(name, wanted) == 0)
                return symbol.st_value;
        }
    }
    return 0;
}

static int find_state(struct dl_phdr_info *info, size_t size, void *unused) {
    const char *const slash = strrchr(info->dlpi_name, '/');
    (void)size;
    (void)unused;
    if (!slash || strcmp(slash, "/libotelprof.so") != 0)
        return 0;
    const int file = open(info->dlpi_name, O_RDONLY | O_CLOEXEC);
    Elf *const elf = elf_begin(file, ELF_C_READ, NULL);
    const uint64_t value = elf ? symbol_in(elf, "sampler") : 0;
    if (value)
        state = (void *)(info->dlpi_addr + value);
    elf_end(elf);
    close(file);
    return 1;
}

/* --- signals --- */

__attribute__((noinline)) static void send(int number, int overrun) {
    siginfo_t info = {.si_signo = number, .si_code = SI_TIMER};
    const pid_t process = getpid();
    info.si_value.sival_ptr = state;
    info.si_overrun = overrun;
    if (state)
        syscall(SYS_rt_tgsigqueueinfo, process, process, number, &info);
    else
        syscall(SYS_tgkill, process, process, number);
}

static uintptr_t interrupted_rsp;

static void note_rsp(int number, siginfo_t *info, void *context) {
    const ucontext_t *const interrupted = context;
    (void)number;
    (void)info;
    interrupted_rsp = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RSP];
}

static void do_nothing(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
}

static void install(int number, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = handler,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

/* --- time, at a known depth --- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

__attribute__((noinline)) static void measure(int depth, const char *name, int number) {
    double times[REPEATS];
    send(number, 0);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        const uint64_t start = now();
        for (int i = 0; i < SIGNALS; i++)
            send(number, 0);
        times[repeat] = (double)(now() - start) / SIGNALS;
    }
    qsort(times, REPEATS, sizeof *times, by_value);
    printf("%d %s %.0f\n", depth, name, times[REPEATS / 2]);
}

__attribute__((noinline)) static void measure_warm(int depth) {
    measure(depth, "empty", SIGUSR1);
    measure(depth, "sample", SIGPROF);
    __asm__ volatile("" : : : "memory"); /* keeps a call from becoming a jump, which has no frame */
}

__attribute__((noinline)) static void measure_first(int depth) {
    struct rusage before;
    struct rusage after;
    for (int i = 0; i < SIGNALS; i++) /* few: no sample may come by itself before */
        send(SIGUSR1, 0);
    getrusage(RUSAGE_THREAD, &before);
    const uint64_t first_start = now();
    send(SIGPROF, 0);
    const uint64_t first = now() - first_start;
    getrusage(RUSAGE_THREAD, &after);
    const uint64_t second_start = now();
    send(SIGPROF, 0);
    const uint64_t second = now() - second_start;
    printf("%d first %llu\n", depth, (unsigned long long)first);
    printf("%d faults %ld\n", depth, after.ru_minflt - before.ru_minflt);
    printf("%d second %llu\n", depth, (unsigned long long)second);
    measure(depth, "empty", SIGUSR1);
}

static void (*bottom)(int depth);
static int depth_there;

#define BOTTOM() bottom(depth_there)
#include "recursion.h"

__attribute__((noinline)) static void descend(int depth, void (*function)(int depth)) {
    bottom = function;
    depth_there = depth;
    sink = recursion(depth - OUTER_FRAMES, sink, 2);
}

/* --- stack --- */

static size_t used(const unsigned char *low, const unsigned char *high) {
    const unsigned char *at = low;
    while (at < high && *at == PAINT)
        at++;
    return (size_t)(high - at);
}

/* Measures what the signal pushes below the rsp that it interrupts: equal for both signals. */
__attribute__((noinline)) static size_t stack_of(int number) {
    unsigned char *const high = (unsigned char *)__builtin_frame_address(0) - 512;
    unsigned char *const low = high - PAINTED;
    install(SIGUSR2, note_rsp);
    send(SIGUSR2, 0);
    for (volatile unsigned char *at = low; at < high; at++)
        *at = PAINT;
    send(number, 0);
    return interrupted_rsp - (uintptr_t)(high - used(low, high));
}

static size_t alternate_stack_of(int number) {
    unsigned char *const memory = malloc(PAINTED);
    const stack_t stack = {.ss_sp = memory, .ss_size = PAINTED};
    const stack_t none = {.ss_flags = SS_DISABLE};
    memset(memory, PAINT, PAINTED);
    sigaltstack(&stack, NULL);
    send(number, 0);
    sigaltstack(&none, NULL);
    const size_t size = used(memory, memory + PAINTED);
    free(memory);
    return size;
}

static void stay_on_this_core(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void prepare(void) {
    struct sigaction present;
    elf_version(EV_CURRENT);
    dl_iterate_phdr(find_state, NULL);
    stay_on_this_core();
    install(SIGUSR1, do_nothing);
    sigaction(SIGPROF, NULL, &present);
    if (!state && present.sa_handler == SIG_DFL) /* no profiler is there */
        install(SIGPROF, do_nothing);
}

int main(int argc, char **argv) {
    static const int depths[] = {10, 30, 60, 128};
    prepare();
    if (argc == 3) {
        const int count = atoi(argv[2]);
        for (int i = 0; i < count; i++)
            send(SIGPROF, 1);
        printf("sent %d\n", count);
        return 0;
    }
    if (argc == 2) {
        descend(FIRST_DEPTH, measure_first);
        return 0;
    }
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
        descend(depths[i], measure_warm);
    printf("frame %zu\n", alternate_stack_of(SIGUSR1));
    printf("alternate %zu\n", alternate_stack_of(SIGPROF));
    printf("stack_frame %zu\n", stack_of(SIGUSR1));
    printf("stack %zu\n", stack_of(SIGPROF));
    return 0;
}
