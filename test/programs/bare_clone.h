/* Makes children that no fork handler sees. */
#ifndef TEST_BARE_CLONE_H
#define TEST_BARE_CLONE_H

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Makes a child by the system call's number, with result 0 in the child, or by libc's clone(),
 * where the child runs `run` on a stack of its own. */
static inline pid_t bare_clone(const char *how, int (*run)(void *)) {
    static _Alignas(16) char stack[1 << 18];
    if (strcmp(how, "syscall") == 0)
        return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    return clone(run, stack + sizeof stack, SIGCHLD, NULL);
}

/* Waits for the child and prints how it ended. */
static inline void tell_end_of(pid_t child) {
    int status;
    waitpid(child, &status, 0);
    printf("%s %d\n", WIFEXITED(status) ? "ended with" : "killed by",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

#endif
