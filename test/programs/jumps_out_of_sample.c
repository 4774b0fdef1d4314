/* Has a handler that jumps out of the profiler's record of an allocation.
 *
 * usage: jumps_out_of_sample overflow|overflow-unmasked|sent
 *
 * - overflow: a thread's stack ends in the middle of an allocation; the handler of SIGSEGV, on a
 *   stack of its own, leaves by siglongjmp(), as libsigsegv and OCaml do
 * - overflow-unmasked: the jump restores no mask; the thread unblocks SIGSEGV alone, as Ruby does
 * - sent: once the profiler's exporter is loaded, another thread sends SIGSEGV, and the handler
 *   jumps if it finds the thread in the profiler's library
 *
 * Prints the signals that the thread then blocks, and allocates ALLOCATIONS objects in
 * allocates_after(), which the profile must have. */
#define _GNU_SOURCE
#include "noipa.h"

#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { ROOM = 1 << 16, STACK_BYTES = 1 << 18, JUMPS = 20, ALLOCATIONS = 1000, BYTES = 1000 };

static sigjmp_buf out;
static const char *way;
static uintptr_t ours_begin, ours_end;
static _Atomic int jumps;
static _Atomic bool may_jump; /* `out` is filled in */

static bool way_is(const char *name) {
    return strcmp(way, name) == 0;
}

static void find_library(void) {
    char line[512];
    unsigned long begin, end;
    FILE *const maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "/libotelprof.so") && sscanf(line, "%lx-%lx r-x", &begin, &end) == 2 &&
            strstr(line, "r-x")) {
            ours_begin = begin;
            ours_end = end;
        }
    if (maps)
        fclose(maps);
}

static void leaves(int number, siginfo_t *info, void *context) {
    const uintptr_t pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    (void)number;
    (void)info;
    if (way_is("sent") && (!atomic_load(&may_jump) || pc < ours_begin || pc >= ours_end))
        return;
    atomic_fetch_add(&jumps, 1);
    siglongjmp(out, 1);
}

NOIPA static void allocate(size_t size) {
    void *const object = malloc(size);
    __asm__ volatile("" : : "r"(object) : "memory");
    free(object);
}

NOIPA static int allocates_deeply(int depth) {
    volatile char used[64];
    used[0] = (char)depth;
    allocate(24);
    return depth < 0 ? 0 : allocates_deeply(depth + 1) + used[0];
}

NOIPA static void allocates_after(void) {
    for (int i = 0; i < ALLOCATIONS; i++)
        allocate(BYTES);
}

static void print_mask(void) {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    fputs("blocked:", stdout);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(&mask, number) == 1)
            printf(" %d", number);
    puts("");
}

static void overflow(bool saves_mask) {
    if (sigsetjmp(out, saves_mask) == 0)
        (void)allocates_deeply(0);
}

static void *jump(void *unused) {
    char *const room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const stack_t stack = {.ss_sp = room, .ss_size = ROOM};
    sigset_t segv;
    sigaltstack(&stack, NULL);
    sigemptyset(&segv);
    sigaddset(&segv, SIGSEGV);
    if (way_is("sent")) {
        (void)sigsetjmp(out, 1);
        atomic_store(&may_jump, true);
        while (atomic_load(&jumps) < JUMPS)
            allocate(24);
        pthread_sigmask(SIG_BLOCK, &segv, NULL);
    } else {
        for (volatile int i = 0; i < JUMPS; i++) {
            overflow(way_is("overflow"));
            pthread_sigmask(SIG_UNBLOCK, &segv, NULL);
        }
    }
    print_mask();
    allocates_after();
    return unused;
}

static int find_exporter(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    return strstr(info->dlpi_name, "libotelprof-flush.so") != NULL;
}

/* A jump out of the helper's creation would leave the process without a helper. */
static void wait_for_exporter(void) {
    while (way_is("sent") && getenv("LD_PRELOAD") && !dl_iterate_phdr(find_exporter, NULL))
        usleep(10000);
}

int main(int argc, char **argv) {
    const struct sigaction action = {.sa_sigaction = leaves, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    pthread_t thread;
    pthread_attr_t attributes;
    way = argc > 1 ? argv[1] : "";
    find_library();
    sigaction(SIGSEGV, &action, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(&thread, &attributes, jump, NULL) != 0)
        return 1;
    wait_for_exporter();
    while (way_is("sent") && atomic_load(&jumps) < JUMPS)
        pthread_kill(thread, SIGSEGV);
    pthread_join(thread, NULL);
    printf("%d jumps\n", atomic_load(&jumps));
    return 0;
}
