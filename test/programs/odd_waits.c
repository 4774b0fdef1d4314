/* Makes calls that may block in unusual places.
 *
 * usage: odd_waits handler|jump|vfork|fork
 *
 * handler: a signal's handler makes them, in the middle of others, and of itself.
 * jump: a handler leaves one by a jump, again and again; then the thread works, and then sleeps.
 * vfork, fork: children make them.
 * Prints how many had a result that they may not have. */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 100, SMALL_US = 200, STATUS = 3 };

static int ends[2];
static volatile sig_atomic_t wrong;
static volatile sig_atomic_t handled;

static bool may_be(long result, long wanted) {
    return result == wanted || (result == -1 && errno == EINTR);
}

static void make_calls(void) {
    const struct timespec small = {0, SMALL_US * 1000};
    char byte = 'x';
    int status;
    wrong += !may_be(write(ends[1], &byte, 1), 1);
    wrong += !may_be(poll(NULL, 0, 1), 0);
    wrong += !may_be(read(ends[0], &byte, 1), 1);
    wrong += !may_be(nanosleep(&small, NULL), 0);
    wrong += !(waitpid(-1, &status, WNOHANG) <= 0);
}

/* --- handler --- */

static void handle(int number) {
    const int saved = errno;
    (void)number;
    handled++;
    make_calls();
    errno = saved;
}

static void set(void (*handler)(int), int first_us, int next_us) {
    struct sigaction action = {.sa_flags = SA_NODEFER | SA_RESTART};
    const struct itimerval often = {{0, next_us}, {0, first_us}};
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static void call_beside_handler(void) {
    set(handle, 3000, 7000);
    for (int i = 0; i < TURNS || handled < 10; i++)
        make_calls();
    signal(SIGALRM, SIG_IGN);
}

/* --- jump --- */

static sigjmp_buf before;

static void leave(int number) {
    (void)number;
    siglongjmp(before, 1);
}

BURNER(burn_after_jump, 500)

__attribute__((noinline)) static void sleep_after_jump(void) {
    const struct timespec half = {0, 500000000};
    nanosleep(&half, NULL);
    __asm__ volatile("");
}

__attribute__((noinline)) static void leave_by_jump(void) {
    char byte;
    for (volatile int i = 0; i < TURNS; i++)
        if (sigsetjmp(before, 1) == 0) {
            set(leave, 500, 0);
            wrong += read(ends[0], &byte, 1) != 0;
        }
}

static void jump(void) {
    leave_by_jump();
    burn_after_jump();
    sleep_after_jump();
}

/* --- children --- */

static void be_parent_of(pid_t child) {
    int status = 0;
    wrong += waitpid(child, &status, 0) != child || WEXITSTATUS(status) != STATUS;
}

static void make_children(bool by_vfork) {
    for (int i = 0; i < TURNS / 4; i++) {
        const pid_t child = by_vfork ? vfork() : fork();
        if (child == 0) {
            make_calls();
            _exit(STATUS);
        }
        be_parent_of(child);
    }
}

int main(int argc, char **argv) {
    const char *const mode = argc > 1 ? argv[1] : "";
    wrong = pipe(ends) != 0;
    if (strcmp(mode, "handler") == 0)
        call_beside_handler();
    else if (strcmp(mode, "jump") == 0)
        jump();
    else
        make_children(strcmp(mode, "vfork") == 0);
    printf("%d wrong\n", (int)wrong);
    return 0;
}
