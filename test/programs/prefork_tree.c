/* Is a server's tree: a master with workers that get their jobs in differing ways, never call
 * malloc, and end in differing ways; one worker has a child of its own. Prints for each process its
 * name, its id, the CPU time of its main thread, and the CPU time that the kernel charges the whole
 * process with (the master's own: so far), in nanoseconds.
 */
#include "cpu_sample.h"
#include "forked.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 5, JOB_MS = 20, ALL_MS = JOBS * JOB_MS, WORKERS = 7 };

/* Is shared by all processes of the tree. */
static struct shared {
    /* used by the main threads of workers, grandchild, master */
    volatile uint64_t used[WORKERS + 2];
    volatile uint64_t charged[WORKERS + 2]; /* charged by the kernel */
    volatile int ids[WORKERS + 2];
} * shared;
enum { HAS_A_CHILD = WORKERS - 1, GRANDCHILD, MASTER };

static int jobs[2]; /* socket pair to the new worker: the worker's end, the master's */

NOIPA static void does_a_job(void) {
    WORK_FOR(JOB_MS * NS_PER_MS);
    TAKE_CPU_SAMPLE();
}

static uint64_t charged_by(const struct rusage *usage) {
    const uint64_t seconds = (uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec;
    const uint64_t micro = (uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec;
    return seconds * 1000 * NS_PER_MS + micro * NS_PER_US;
}

static void note_own(int place) {
    shared->used[place] = cpu_now();
}

static void reap(pid_t id, int place) {
    struct rusage usage;
    wait4(id, NULL, 0, &usage);
    shared->ids[place] = id;
    shared->charged[place] = charged_by(&usage);
}

static void answer(int place) {
    note_own(place);
    if (write(jobs[0], "d", 1) != 1)
        _exit(1);
}

/* --- the workers: `place` is their index in `shared` --- */

static void read_jobs(int place) {
    char job;
    while (recvfrom(jobs[0], &job, 1, 0, NULL, NULL) == 1) {
        does_a_job();
        answer(place);
    }
    _exit(0);
}

static void poll_for_jobs(int place) {
    char job;
    struct pollfd ready = {.fd = jobs[0], .events = POLLIN};
    while (poll(&ready, 1, -1) == 1 && recvfrom(jobs[0], &job, 1, 0, NULL, NULL) == 1) {
        does_a_job();
        answer(place);
    }
    exit(0);
}

static void do_all(int place) {
    for (int i = 0; i < JOBS; i++)
        does_a_job();
    note_own(place);
}

static void end_by_exit(int place) {
    do_all(place);
    exit(0);
}

static void end_by_exit_at_once(int place) {
    do_all(place);
    _exit(0);
}

static void have_a_child(int place) {
    const pid_t id = fork_profiled();
    if (id == 0)
        end_by_exit_at_once(GRANDCHILD);
    do_all(place);
    reap(id, GRANDCHILD);
    note_own(place);
    exit(0);
}

static void exit_from_handler(int number) {
    (void)number;
    _exit(0);
}

static void end_in_handler(int place) {
    signal(SIGTERM, exit_from_handler);
    read_jobs(place);
}

/* --- the master --- */

static const struct {
    const char *name;
    void (*run)(int place);
    int ends; /* the signal that ends the worker, or 0 */
    bool is_given_jobs;
} workers[WORKERS] = {
    {"reads", read_jobs, SIGTERM, true},      {"polls", poll_for_jobs, SIGTERM, true},
    {"reads_to_the_end", read_jobs, 0, true}, {"ends_in_handler", end_in_handler, SIGTERM, true},
    {"exits", end_by_exit, 0, false},         {"exits_at_once", end_by_exit_at_once, 0, false},
    {"has_a_child", have_a_child, 0, false},
};

static void give_jobs(void) {
    char answered;
    for (int i = 0; i < JOBS; i++)
        if (write(jobs[1], "j", 1) != 1 || read(jobs[1], &answered, 1) != 1)
            abort();
}

static void employ(int place) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, jobs) != 0)
        abort();
    const pid_t id = fork_profiled();
    if (id == 0) {
        close(jobs[1]);
        workers[place].run(place);
    }
    close(jobs[0]);
    if (workers[place].is_given_jobs)
        give_jobs();
    if (workers[place].ends)
        kill(id, workers[place].ends);
    close(jobs[1]);
    reap(id, place);
}

static void print(const char *name, int place) {
    printf("%s %d %llu %llu\n", name, shared->ids[place], (unsigned long long)shared->used[place],
           (unsigned long long)shared->charged[place]);
}

int main(void) {
    struct rusage usage;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < WORKERS; i++)
        employ(i);
    do_all(MASTER);
    getrusage(RUSAGE_SELF, &usage);
    shared->ids[MASTER] = getpid();
    shared->charged[MASTER] = charged_by(&usage);
    /* the worker has waited for its child */
    shared->charged[HAS_A_CHILD] -= shared->charged[GRANDCHILD];
    for (int i = 0; i < WORKERS; i++)
        print(workers[i].name, i);
    print("grandchild", GRANDCHILD);
    print("master", MASTER);
    return 0;
}
