/* Has the kernel poll an io_uring by a thread of its own inside of this process, until that has
 * used 100 ms of CPU time, and a thread by clone(2) compute to the end. Prints the CPU time of the
 * kernel's thread in nanoseconds; "refused" where there is no io_uring. */
#define _GNU_SOURCE
#include "bare_call.h"

#include <linux/io_uring.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 16, WANTED_US = 100000 };

static char stack[STACK_BYTES] __attribute__((aligned(16)));
static volatile unsigned long turns;

static int computes_bare(void *unused) {
    (void)unused;
    for (;;)
        turns++;
    return 0;
}

/* Of the process without its main thread. */
static int64_t kernels_us(void) {
    struct rusage all;
    struct rusage mine;
    getrusage(RUSAGE_SELF, &all);
    getrusage(RUSAGE_THREAD, &mine);
    return (all.ru_stime.tv_sec - mine.ru_stime.tv_sec) * INT64_C(1000000) + all.ru_stime.tv_usec -
           mine.ru_stime.tv_usec;
}

/* The kernel's thread polls once it has had an entry. */
static bool submit(int ring, const struct io_uring_params *parameters) {
    enum { RING_BYTES = 65536, ENTRIES = 8 };
    char *const queue =
        mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *const entries = mmap(
        NULL, ENTRIES * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    if (queue == MAP_FAILED || entries == MAP_FAILED)
        return false;
    entries->opcode = IORING_OP_NOP;
    *(uint32_t *)(void *)(queue + parameters->sq_off.array) = 0;
    __atomic_store_n((uint32_t *)(void *)(queue + parameters->sq_off.tail), 1, __ATOMIC_RELEASE);
    return bare_call(SYS_io_uring_enter, ring, 1, 0, IORING_ENTER_SQ_WAKEUP, 0, 0) >= 0;
}

int main(void) {
    static const int as_a_thread =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    struct io_uring_params parameters;
    memset(&parameters, 0, sizeof parameters);
    parameters.flags = IORING_SETUP_SQPOLL;
    parameters.sq_thread_idle = 600000;
    const long ring = bare_call(SYS_io_uring_setup, 8, (long)&parameters, 0, 0, 0, 0);
    if (ring < 0 || !submit((int)ring, &parameters)) {
        puts("refused");
        return 0;
    }
    while (kernels_us() < WANTED_US)
        usleep(1000);
    const int64_t polled_us = kernels_us();
    if (clone(computes_bare, stack + STACK_BYTES, as_a_thread, NULL) < 0)
        return 1;
    while (turns < 1000000)
        usleep(1000);
    printf("%lld\n", (long long)polled_us * 1000);
    return 0;
}
