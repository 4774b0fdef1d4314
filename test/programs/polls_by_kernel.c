/* Has the kernel poll an io_uring by a thread of its own inside of this process, until that thread
 * has used 100 ms of CPU time, and a thread made by clone(2) compute to the end. Prints the CPU
 * time of the kernel's thread in nanoseconds; "refused" where there is no io_uring. */
#define _GNU_SOURCE
#include "bare_call.h"

#include <dirent.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 16, WANTED_NS = 100000000 };

static char stack[STACK_BYTES] __attribute__((aligned(16)));
static volatile unsigned long turns;

static int computes_bare(void *unused) {
    (void)unused;
    for (;;)
        turns++;
    return 0;
}

/* Returns the CPU time of the kernel's thread, which is made before io_uring_setup() returns. */
static int64_t polled_ns(void) {
    struct timespec used = {0, 0};
    DIR *const threads = opendir("/proc/self/task");
    for (struct dirent *entry; threads && (entry = readdir(threads)) != NULL;) {
        char path[300];
        char name[16] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *const file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file) && strncmp(name, "iou-sqp", 7) == 0)
            /* the kernel's include/linux/posix-timers.h: the scheduler's clock of one thread */
            clock_gettime((clockid_t)(~(unsigned)atoi(entry->d_name) << 3 | 6), &used);
        if (file)
            fclose(file);
    }
    if (threads)
        closedir(threads);
    return used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
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
    while (polled_ns() < WANTED_NS)
        usleep(1000);
    const int64_t polled = polled_ns();
    if (clone(computes_bare, stack + STACK_BYTES, as_a_thread, NULL) < 0)
        return 1;
    while (turns < 1000000)
        usleep(1000);
    printf("%lld\n", (long long)polled);
    return 0;
}
