/* Has a child that is process 1 of a new namespace, made by fork, syscall or clone (the argument).
 * The child sleeps for half a second, while it is sent SIGTERM from outside, sends SIGTERM to
 * itself, and prints whether it noticed anything else. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10, CHILD_STATUS = 5, SIGNAL_AFTER_US = 200000 };

static int sleeps(void *unused) {
    static const char slept[] = "process 1 slept\n";
    struct timespec left = {0, 500000000};
    (void)unused;
    if (getpid() == 1 && nanosleep(&left, &left) == 0 && kill(1, SIGTERM) == 0)
        (void)!write(STDOUT_FILENO, slept, sizeof slept - 1);
    _exit(CHILD_STATUS);
}

static pid_t begin(const char *how) {
    static _Alignas(16) char stack[STACK_BYTES];
    if (strcmp(how, "clone") == 0)
        return clone(sleeps, stack + sizeof stack, CLONE_NEWPID | SIGCHLD, NULL);
    if (strcmp(how, "syscall") == 0)
        return (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
    return unshare(CLONE_NEWPID) == 0 ? fork() : -1;
}

int main(int argc, char **argv) {
    int status = 0;
    const pid_t child = begin(argc > 1 ? argv[1] : "fork");
    if (child == 0)
        sleeps(NULL);
    usleep(SIGNAL_AFTER_US);
    if (child < 0 || kill(child, SIGTERM) != 0 || waitpid(child, &status, 0) != child)
        return 1;
    printf("ended with %d\n", WEXITSTATUS(status));
    return 0;
}
