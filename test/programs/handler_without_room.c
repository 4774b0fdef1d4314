/* Has signal handlers with SA_ONSTACK in trouble with their stack: there is no room for a frame, or
 * the thread's own stack is at its end.
 *
 * usage: handler_without_room HOW
 *
 * - no room: the handler uses nearly all of the alternate stack and raises the signal again, whose
 *   frame no longer fits
 * - unmapped: the alternate stack is not mapped any more
 * - unmapped, handled: SIGSEGV has a handler, which needs that stack, too
 * - overflow: there is no alternate stack, and the thread's own stack is at its end
 * - caught: the handler of SIGSEGV has a stack of its own, and leaves the overflow of the thread's
 *   stack by a jump, four times */
#define _GNU_SOURCE
#include "noipa.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { ROOM = 1 << 16 };

static sigjmp_buf out;

static void on_signal(int number) {
    (void)number;
}

/* Uses nearly all of the stack, and raises the signal again on the rest. */
static void on_signal_with_little_left(int number) {
    volatile char used[ROOM - 3072];
    memset((char *)used, 1, sizeof used);
    raise(number);
}

static void leaves(int number) {
    (void)number;
    siglongjmp(out, 1);
}

static void handle(int number, void (*handler)(int), int flags) {
    const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | flags};
    sigaction(number, &action, NULL);
}

static char *set_stack(void) {
    char *const room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const stack_t stack = {.ss_sp = room, .ss_size = ROOM};
    sigaltstack(&stack, NULL);
    return room;
}

NOIPA static int overflow(int depth) {
    volatile char used[4096];
    used[0] = (char)depth;
    return depth < 0 ? 0 : overflow(depth + 1) + used[0];
}

int main(int argc, char **argv) {
    const char *const how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "no room") == 0) {
        (void)set_stack();
        handle(SIGUSR1, on_signal_with_little_left, SA_NODEFER);
        raise(SIGUSR1);
    } else if (strncmp(how, "unmapped", strlen("unmapped")) == 0) {
        munmap(set_stack(), ROOM);
        handle(SIGUSR1, on_signal, 0);
        if (strstr(how, "handled"))
            handle(SIGSEGV, on_signal, 0);
        raise(SIGUSR1);
    } else if (strcmp(how, "overflow") == 0) {
        handle(SIGSEGV, on_signal, 0);
        return overflow(0);
    } else if (strcmp(how, "caught") == 0) {
        (void)set_stack();
        handle(SIGSEGV, leaves, 0);
        for (volatile int i = 0; i < 4; i++) {
            if (sigsetjmp(out, 1) == 0)
                return overflow(0);
            puts("overflow caught");
        }
        return 0;
    }
    return 1;
}
