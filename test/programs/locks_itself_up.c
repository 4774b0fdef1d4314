/* Works, puts itself into a sandbox that kills it for every call that it does not make itself,
 * works on, and ends with status 7.
 *
 * usage: locks_itself_up prctl|seccomp|all|mild exit|_exit|return|fork|thread|signal|ignore [child]
 *
 * The first argument is how the sandbox is entered (all: by seccomp, and for every thread; mild: by
 * prctl, and only creating files kills), the second how the program ends (signal: by SIGTERM, sent
 * to itself; ignore: as _exit, after it has ignored SIGPROF). child: a forked child does all that,
 * and its parent ends with its status.
 */
#define _GNU_SOURCE
#include "noipa.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORK_MS = 500, MOST = 64 };

static struct sock_filter filter[2 * MOST];
static unsigned short length;
static uint64_t rounds_per_work;

static void let(const int *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        filter[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[i], 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
}

#define LET(...) let((const int[]){__VA_ARGS__}, sizeof(const int[]){__VA_ARGS__} / sizeof(int))

static void make_mild(void) {
    filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_creat, 1, 0);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

static void make_strict(const char *end) {
    LET(SYS_write, SYS_exit_group);
    if (strcmp(end, "fork") == 0)
        LET(SYS_clone, SYS_wait4, SYS_rt_sigprocmask, SYS_set_robust_list, SYS_futex);
    if (strcmp(end, "thread") == 0)
        LET(SYS_clone, SYS_clone3, SYS_mmap, SYS_mprotect, SYS_munmap, SYS_madvise,
            SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_set_robust_list, SYS_rseq, SYS_exit,
            SYS_futex);
    if (strcmp(end, "signal") == 0)
        LET(SYS_kill);
    if (strcmp(end, "ignore") == 0)
        LET(SYS_rt_sigaction);
}

static void enter_sandbox(const char *how, const char *end) {
    filter[length++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    if (strcmp(how, "mild") == 0)
        make_mild();
    else
        make_strict(end);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    const struct sock_fprog program = {.len = length, .filter = filter};
    const unsigned flags = strcmp(how, "all") == 0 ? SECCOMP_FILTER_FLAG_TSYNC : 0;
    const int failed = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                       (strcmp(how, "prctl") == 0 || strcmp(how, "mild") == 0
                            ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0
                            : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) != 0);
    if (failed) {
        perror("locks_itself_up");
        _exit(3);
    }
}

static volatile uint64_t sink;

static void work(uint64_t rounds) {
    uint64_t x = 1;
    while (rounds-- > 0) {
        for (int i = 0; i < 10000; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
        void *volatile gone = malloc(4000);
        free(gone);
    }
    sink = x;
}

/* Measures how many rounds its time takes: no clock may be read later. */
NOIPA static void works_before(void) {
    struct timespec t;
    do {
        work(1);
        rounds_per_work++;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while ((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 < WORK_MS);
}

NOIPA static void works_after(void) {
    work(rounds_per_work);
}

static void *thread_main(void *unused) {
    works_after();
    return unused;
}

static int wait_for(pid_t child) {
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int fork_and_wait(void) {
    const pid_t child = fork();
    if (child == 0) {
        works_after();
        exit(5);
    }
    return wait_for(child) + 2;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    const char *const end = argv[2];
    const pid_t child = argc > 3 ? fork() : 0;
    if (child != 0)
        return wait_for(child);
    const pid_t self = getpid();
    static char freed_later[1 << 20];
    void *volatile large = malloc(sizeof freed_later); /* sampled, and freed inside the sandbox */
    works_before();
    enter_sandbox(argv[1], end);
    works_after();
    if (strcmp(end, "thread") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, thread_main, NULL) != 0 ||
            pthread_join(thread, NULL) != 0)
            return 4;
        free(large); /* may unmap it, which the filter allows here */
    }
    (void)!write(STDOUT_FILENO, "worked\n", 7);
    if (strcmp(end, "fork") == 0)
        return fork_and_wait();
    if (strcmp(end, "signal") == 0)
        kill(self, SIGTERM);
    if (strcmp(end, "ignore") == 0)
        signal(SIGPROF, SIG_IGN);
    if (strcmp(end, "_exit") == 0 || strcmp(end, "ignore") == 0)
        _exit(7);
    if (strcmp(end, "exit") == 0)
        exit(7);
    return 7;
}
