/* Forks a child that hardly works. The child waits in poll, again and again, until the named file
 * exists; or, without a name, once, for half a second, in read. Prints the child's process id. */
#include "forked.h"

#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *end;
static int pipe_ends[2];

__attribute__((noinline)) static void child_waits(void) {
    char byte;
    if (end)
        poll(NULL, 0, 20);
    else
        (void)!read(pipe_ends[0], &byte, 1);
    __asm__ volatile(""); /* prevents a tail call */
}

int main(int argc, char **argv) {
    end = argc > 1 ? argv[1] : NULL;
    if (pipe(pipe_ends))
        return 2;
    const pid_t child = fork_profiled();
    if (child == 0) {
        close(pipe_ends[1]);
        do
            child_waits();
        while (end && access(end, F_OK) != 0);
        return 0;
    }
    printf("%d\n", (int)child);
    fflush(stdout);
    usleep(500000);
    close(pipe_ends[1]);
    return waitpid(child, NULL, 0) != child;
}
