/* Makes children that have our variables without our threads, because no handler of fork ran for
 * them: they must neither wait for the helper nor take it away from their parent.
 *
 * usage: borrowed_memory clone|vfork|vfork-works
 *
 * The child of clone(2) or vfork() calls unshare; or a forked child's vforked child allocates. Each
 * prints its own line, and the process that made it works on after that. */
#define _GNU_SOURCE
#include "cpu_sample.h"
#include "forked.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

SAMPLED_BURNER(works_on, 60)

static void say(const char *line) {
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        _exit(1);
}

static void enter_namespace(void) {
    (void)unshare(CLONE_NEWUSER); /* this test does not judge whether the call is allowed */
    say("unshared\n");
    syscall(SYS_exit_group, 3);
}

NOIPA static void allocate(void) {
    for (int i = 0; i < 100; i++) {
        void *volatile block = malloc(1 << 20);
        free(block);
    }
}

/* Runs on our stack as the child, and never returns. */
NOIPA static int child_of_vfork(int allocates) {
    int status;
    const pid_t child = vfork();
    if (child == 0) {
        if (!allocates)
            enter_namespace();
        allocate();
        say("allocated\n");
        syscall(SYS_exit_group, 3);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static int child_of_clone(void) {
    int status;
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        enter_namespace();
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static int forked(void) {
    int status;
    const pid_t child = fork_profiled();
    if (child == 0) {
        const int made = child_of_vfork(1);
        works_on();
        exit(made);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

int main(int argc, char **argv) {
    const char *const how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "vfork-works") == 0)
        return forked();
    const int status = strcmp(how, "vfork") == 0 ? child_of_vfork(0) : child_of_clone();
    works_on();
    return status;
}
