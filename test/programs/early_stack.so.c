/* Is a library whose constructor sets a handler without SA_ONSTACK and then a stack with
 * SS_AUTODISARM, before the profiler's constructor runs. The handler prints whether the kernel has
 * an alternate stack for the thread. */
#include "bare_call.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { DISARMS = (int)(1U << 31), STACK = 128 << 10 };

static void report_stack(int number) {
    stack_t present;
    (void)number;
    bare_call(SYS_sigaltstack, 0, (long)&present, 0, 0, 0, 0);
    puts(present.ss_size ? "a stack" : "none");
}

__attribute__((constructor)) static void set_handler_and_stack(void) {
    static char memory[STACK];
    const stack_t disarms = {.ss_sp = memory, .ss_size = sizeof memory, .ss_flags = DISARMS};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = report_stack;
    sigaction(SIGUSR1, &action, NULL);
    sigaltstack(&disarms, NULL);
}
