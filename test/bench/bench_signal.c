/* What one CPU sample costs from signal to return, under whatever profiler is preloaded, and how
 * much of the interrupted stack it takes.
 *
 * usage: bench_signal
 * Prints "DEPTH sample NANOSECONDS", "DEPTH empty NANOSECONDS" (a handler that does nothing: the
 * bound), and "stack BYTES" and "alternate BYTES": what a sample used below the interrupted rsp,
 * and of an alternate stack, the kernel's own frame included, then "frame BYTES", that frame alone.
 * libotelprof's samples are asked for by a signal that looks like its timer's: it carries the
 * address of the profiler's state, found in the library's symbol table. Other profilers take any
 * SIGPROF.
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
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { REPEATS = 31, SIGNALS = 300, PAINTED = 64 << 10, PAINT = 0xa5 };

static volatile uint64_t sink;
static void *state; /* of libotelprof; NULL: it is not there */

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
    const uint64_t value = elf ? symbol_in(elf, "capture") : 0;
    if (value)
        state = (void *)(info->dlpi_addr + value);
    elf_end(elf);
    close(file);
    return 1;
}

/* --- signals --- */

static void send(int number) {
    siginfo_t info = {.si_signo = number, .si_code = SI_TIMER};
    info.si_value.sival_ptr = state;
    const pid_t process = getpid();
    if (state)
        syscall(SYS_rt_tgsigqueueinfo, process, process, number, &info);
    else
        syscall(SYS_tgkill, process, process, number);
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

static void measure(int depth, const char *name, int number) {
    double times[REPEATS];
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        const uint64_t start = now();
        for (int i = 0; i < SIGNALS; i++)
            send(number);
        times[repeat] = (double)(now() - start) / SIGNALS;
    }
    qsort(times, REPEATS, sizeof *times, by_value);
    printf("%d %s %.0f\n", depth, name, times[REPEATS / 2]);
}

__attribute__((noinline)) static void descend(int depth, int left) {
    volatile char room[48];
    room[0] = (char)left;
    if (left > 0)
        descend(depth, left - 1);
    else {
        measure(depth, "empty", SIGUSR1);
        measure(depth, "sample", SIGPROF);
    }
    sink += (uint64_t)room[0];
}

/* --- stack --- */

static size_t used(const unsigned char *low, const unsigned char *high) {
    const unsigned char *at = low;
    while (at < high && *at == PAINT)
        at++;
    return (size_t)(high - at);
}

/* All that the signal pushes lies below this frame. */
__attribute__((noinline)) static size_t stack_of(int number) {
    unsigned char *const here = __builtin_frame_address(0);
    unsigned char *const high = here - 512; /* send()'s own frames */
    unsigned char *const low = high - PAINTED;
    for (volatile unsigned char *at = low; at < high; at++)
        *at = PAINT;
    send(number);
    return used(low, high) + 512;
}

static size_t alternate_stack_of(int number) {
    unsigned char *const memory = malloc(PAINTED);
    const stack_t stack = {.ss_sp = memory, .ss_size = PAINTED};
    const stack_t none = {.ss_flags = SS_DISABLE};
    memset(memory, PAINT, PAINTED);
    sigaltstack(&stack, NULL);
    send(number);
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

int main(void) {
    static const int depths[] = {10, 30, 60, 128};
    elf_version(EV_CURRENT);
    dl_iterate_phdr(find_state, NULL);
    stay_on_this_core();
    install(SIGUSR1, do_nothing);
    struct sigaction present;
    sigaction(SIGPROF, NULL, &present);
    if (!state && present.sa_handler == SIG_DFL) /* nobody profiles */
        install(SIGPROF, do_nothing);
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
        descend(depths[i], depths[i] - 5); /* main, three frames outside it, and this one */
    printf("frame %zu\n", alternate_stack_of(SIGUSR1));
    printf("alternate %zu\n", alternate_stack_of(SIGPROF));
    printf("stack %zu\n", stack_of(SIGPROF) - 512);
    return 0;
}
