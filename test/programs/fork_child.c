/* Burns CPU and allocates, and forks a child that does the same in functions of its own, including
 * in a thread. Prints both process ids and the child's status.
 *
 * usage: fork_child exit|_exit|number|exec|quick   (how the child ends)
 */
#include "cpu_sample.h"
#include "forked.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile object;

SAMPLED_BURNER(parent_burns, 50)
SAMPLED_BURNER(child_burns, 40)
SAMPLED_BURNER(child_thread_burns, 30)

#define ALLOCATOR(name)                                                                            \
    NOIPA static void name(void) {                                                                 \
        for (int i = 0; i < 40; i++)                                                               \
            object = malloc(4 << 20);                                                              \
    }
ALLOCATOR(parent_allocates)
ALLOCATOR(child_allocates)

static void *in_thread(void *arg) {
    child_thread_burns();
    return arg;
}

static void child(const char *end) {
    pthread_t thread;
    child_burns();
    child_allocates();
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    if (strcmp(end, "_exit") == 0)
        _exit(3);
    if (strcmp(end, "number") == 0)
        syscall(SYS_exit_group, 3);
    if (strcmp(end, "quick") == 0)
        quick_exit(3);
    if (strcmp(end, "exec") == 0)
        execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
    exit(3);
}

int main(int argc, char **argv) {
    int status;
    parent_burns();
    parent_allocates();
    const pid_t pid = fork_profiled();
    if (pid == 0)
        child(argc > 1 ? argv[1] : "exit");
    waitpid(pid, &status, 0);
    printf("{\"parent\": %d, \"child\": %d, \"status\": %d}\n", getpid(), pid,
           WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    return 0;
}
