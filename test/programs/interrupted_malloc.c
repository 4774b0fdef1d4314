/* Is a program of one thread whose signal handler interrupts malloc. "fork": it forks there, over
 * and over, as libc allows; "exit": it ends the process there, once; "late": it forks while an exit
 * handler allocates. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 300, OBJECTS = 64, PERIOD_US = 2000, CHILD_STATUS = 7, END_STATUS = 3 };

static volatile sig_atomic_t children;

static void forks(int number) {
    int status = 0;
    const pid_t child = fork();
    (void)number;
    if (child == 0)
        _exit(CHILD_STATUS);
    if (waitpid(child, &status, 0) == child && WEXITSTATUS(status) == CHILD_STATUS)
        children++;
}

static void ends(int number) {
    (void)number;
    exit(END_STATUS);
}

static void allocate_at_exit(void) {
    for (size_t i = 0; i < 8; i++)
        free(malloc(3000 + i * 5000));
}

/* Returns a size larger than those that a thread caches: malloc would take a lock for it if there
 * were threads. */
static size_t next_size(void) {
    static unsigned state = 1;
    state = state * 1103515245 + 12345;
    return 2000 + (state >> 8) % 65536;
}

static void allocate(int ending) {
    void *objects[OBJECTS] = {NULL};
    for (size_t i = 0; ending || children < CHILDREN; i = (i + 1) % OBJECTS) {
        free(objects[i]);
        objects[i] = malloc(next_size());
    }
    printf("%d children\n", CHILDREN);
}

static void allocate_late(void) {
    allocate(0);
}

int main(int argc, char **argv) {
    const int ending = argc > 1 && strcmp(argv[1], "exit") == 0;
    const int late = argc > 1 && strcmp(argv[1], "late") == 0;
    const struct sigaction action = {.sa_handler = ending ? ends : forks, .sa_flags = SA_RESTART};
    const struct itimerval every = {{0, PERIOD_US}, {0, ending ? 50 * PERIOD_US : PERIOD_US}};
    atexit(late ? allocate_late : allocate_at_exit);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    if (late)
        usleep(300000);
    else
        allocate(ending);
    return 0;
}
