/* Prints what a program can see of the masks that it sets, in itself and in programs that it
 * starts.
 *
 * usage: masks_seen        prints a line for each; everything but numbers of signals is fixed
 *        masks_seen child  prints the mask, the ignored and the pending signals that it has
 * It burns CPU in between, so that a profiler's timer expires behind each mask.
 */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { LINE_BYTES = 256, KERNEL_SIGSET_BYTES = 8 };
#define LIBCS (3ull << 31) /* posix_spawn() ignores them, the first thread handles them */

extern char **environ;

static uint64_t bits_of(const sigset_t *set) {
    uint64_t bits;
    memcpy(&bits, set, sizeof bits);
    return bits;
}

static uint64_t now_blocked(void) {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    return bits_of(&now);
}

static void say(const char *what, uint64_t bits) {
    printf("%s: %016lx\n", what, bits);
    fflush(stdout);
}

/* Prints the kernel's view. */
static void say_status(const char *what) {
    static const char *const fields[] = {"SigPnd", "ShdPnd", "SigBlk", "SigIgn"};
    char line[LINE_BYTES];
    FILE *const file = fopen("/proc/thread-self/status", "r");
    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            if (strncmp(line, fields[i], strlen(fields[i])) == 0)
                printf("%s: %s %016llx\n", what, fields[i],
                       strtoull(line + strlen(fields[i]) + 1, NULL, 16) & ~LIBCS);
    if (file)
        fclose(file);
    fflush(stdout);
}

static sigset_t every_signal(void) {
    sigset_t set;
    sigfillset(&set);
    return set;
}

static void work(void) {
    WORK_FOR(30 * NS_PER_MS);
}

/* --- in one thread --- */

static void set_and_ask(void) {
    const sigset_t all = every_signal();
    sigset_t old;
    sigset_t prof;
    sigset_t pending;
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &prof, &old);
    say("before SIGPROF was blocked", bits_of(&old));
    work();
    sigprocmask(SIG_SETMASK, &all, &old);
    say("before all were", bits_of(&old));
    work();
    say("with all blocked", now_blocked());
    sigpending(&pending);
    say("pending", bits_of(&pending));
    say_status("the kernel's");
    sigprocmask(SIG_UNBLOCK, &prof, &old);
    say("before SIGPROF was unblocked", bits_of(&old));
    say("after", now_blocked());
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static void by_number(void) {
    uint64_t all;
    uint64_t before = 0;
    uint64_t old = 0;
    const sigset_t set = every_signal();
    memcpy(&all, &set, sizeof all);
    all |= UINT64_C(3) << 31; /* and the two that libc leaves out */
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, KERNEL_SIGSET_BYTES);
    work();
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, &old, KERNEL_SIGSET_BYTES);
    say("by number before", before);
    say("by number", old);
    if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, (void *)16, NULL, KERNEL_SIGSET_BYTES) != -1 ||
        errno != EFAULT)
        printf("a wrong pointer is not refused\n");
}

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    work();
    say("in a handler", now_blocked());
    say("in its context", bits_of(&((const ucontext_t *)context)->uc_sigmask));
}

static void in_handler(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigaddset(&action.sa_mask, SIGPROF);
    sigaction(SIGUSR1, &action, NULL);
    sigprocmask(SIG_UNBLOCK, &usr1, NULL);
    raise(SIGUSR1);
    say("after a handler", now_blocked());
}

static void jump(void) {
    sigjmp_buf place;
    sigset_t none;
    sigemptyset(&none);
    if (sigsetjmp(place, 1) == 0) {
        sigprocmask(SIG_SETMASK, &none, NULL);
        work();
        siglongjmp(place, 1);
    }
    work();
    say("after a jump", now_blocked());
}

static ucontext_t here, there;

static void in_context(void) {
    work();
    say("in another context", now_blocked());
}

static void swap(void) {
    static char stack[1 << 16];
    getcontext(&there);
    say("of a context", bits_of(&there.uc_sigmask));
    sigdelset(&there.uc_sigmask, SIGUSR2);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    there.uc_link = &here;
    makecontext(&there, in_context, 0);
    swapcontext(&here, &there);
    say("back from it", now_blocked());
}

static void *in_thread(void *unused) {
    work();
    say("a new thread's", now_blocked());
    return unused;
}

/* --- in programs that it starts --- */

static void wait_for(pid_t child) {
    waitpid(child, NULL, 0);
}

static void start(void) {
    char path[] = "/proc/self/exe";
    char *const arguments[] = {(char *)"masks_seen", (char *)"child", NULL};
    pid_t child = fork();
    if (child == 0) {
        work();
        say("a forked child's", now_blocked());
        say_status("a forked child's");
        execv(path, arguments);
    }
    wait_for(child);
    child = vfork();
    if (child == 0) {
        execl(path, "masks_seen", "child", (char *)NULL);
        _exit(127);
    }
    wait_for(child);
    if (posix_spawn(&child, path, NULL, NULL, arguments, environ) == 0)
        wait_for(child);
    if (system("exec $MASKS_SEEN child") != 0)
        printf("no shell\n");
    FILE *const pipe = popen("exec $MASKS_SEEN child", "r");
    char line[LINE_BYTES];
    while (pipe && fgets(line, sizeof line, pipe))
        printf("popen: %s", line);
    if (pipe)
        pclose(pipe);
}

static void *look(void *unused) {
    pthread_t thread;
    set_and_ask();
    by_number();
    in_handler();
    jump();
    swap();
    if (pthread_create(&thread, NULL, in_thread, NULL) == 0)
        pthread_join(thread, NULL);
    start();
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc > 1) {
        say("a program's", now_blocked());
        say_status("a program's");
        return 0;
    }
    setenv("MASKS_SEEN", argv[0], 1);
    if (pthread_create(&thread, NULL, look, NULL) == 0)
        pthread_join(thread, NULL);
    printf("the main thread\n");
    say("not blocked there", now_blocked());
    look(NULL);
    return 0;
}
