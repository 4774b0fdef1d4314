/* Tests odd uses of alternate signal stacks, by argument. Prints only things that a program can
 * see.
 *
 * - bounds: stacks that begin or end near the frame of the caller of sigaltstack(), on either side
 * - blocked: a first stack, set while a signal without a handler is blocked: does the kernel have
 *   the program's handler of another signal?
 * - coroutine: goes back to a handler that has returned: its memory is as it was */
#define _GNU_SOURCE
#include "bare_call.h"
#include "noipa.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK = 128 << 10, DISARMS = (int)(1U << 31) };

static sigjmp_buf target;

/* --- coroutine --- */

static sigjmp_buf coroutine;

/* Returns, and is continued later, as QEMU's and other libraries' coroutines are. The stack is
 * still the alternate one, on which no handler runs meanwhile. */
static void begin_coroutine(int number, siginfo_t *info, void *context) {
    volatile unsigned char local[1024];
    (void)number;
    (void)info;
    (void)context;
    memset((unsigned char *)local, 0x5a, sizeof local);
    if (sigsetjmp(coroutine, 0) == 0)
        return;
    int kept = 0;
    for (size_t i = 0; i < sizeof local; i++)
        kept += local[i] == 0x5a;
    printf("kept %d\n", kept);
    siglongjmp(target, 1);
}

static void run_coroutine(int flags) {
    const stack_t stack = {.ss_sp = malloc(STACK), .ss_flags = flags, .ss_size = STACK};
    sigaltstack(&stack, NULL);
    const struct sigaction action = {.sa_sigaction = begin_coroutine,
                                     .sa_flags = SA_ONSTACK | SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    if (sigsetjmp(target, 1) == 0)
        siglongjmp(coroutine, 1);
}

static void coroutines(void) {
    run_coroutine(0);
    run_coroutine(DISARMS);
}

/* --- bounds --- */

static ucontext_t outside_bounds;
static ucontext_t leaving;

static void disable(void) {
    const stack_t disabled = {.ss_flags = SS_DISABLE};
    sigaltstack(&disabled, NULL);
}

/* Takes the stack away by code that runs on another one. */
static void bounds_leave(void) {
    static char elsewhere[STACK];
    getcontext(&leaving);
    leaving.uc_stack = (stack_t){.ss_sp = elsewhere, .ss_size = sizeof elsewhere};
    leaving.uc_link = &outside_bounds;
    makecontext(&leaving, disable, 0);
    swapcontext(&outside_bounds, &leaving);
}

/* Prints where the thread counts as running on the stack. Nothing runs on these stacks. */
NOIPA static void bounds(void) {
    enum { NEAREST = 512, STEP = 8 };
    const stack_t disabled = {.ss_flags = SS_DISABLE};
    char *const here = __builtin_frame_address(0);
    for (int offset = NEAREST; offset >= -NEAREST; offset -= STEP) {
        const stack_t stacks[] = {{.ss_sp = here - offset - STACK, .ss_size = STACK},
                                  {.ss_sp = here - offset, .ss_size = STACK}};
        for (int i = 0; i < 2; i++) {
            stack_t present;
            const int is_set = sigaltstack(&stacks[i], NULL) == 0;
            sigaltstack(NULL, &present);
            const int is_left = sigaltstack(&disabled, NULL) == 0;
            printf("%s %d: %d %x %d\n", i == 0 ? "ends" : "begins", offset, is_set,
                   (unsigned)present.ss_flags, is_left);
            if (!is_left)
                bounds_leave();
        }
    }
}

/* --- blocked --- */

static void nothing(int number) {
    (void)number;
}

/* Sets the stack as a program does that was started with that mask. */
static void set_while_blocked(void) {
    const stack_t stack = {.ss_sp = malloc(STACK), .ss_size = STACK};
    const struct sigaction action = {.sa_handler = nothing};
    struct {
        void (*handler)(int);
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } kernels;
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGWINCH);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    sigaction(SIGUSR1, &action, NULL);
    sigaltstack(&stack, NULL);
    bare_call(SYS_rt_sigaction, SIGUSR1, 0, (long)&kernels, sizeof kernels.mask, 0, 0);
    printf("the program's %d\n", kernels.handler == nothing);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "bounds") == 0)
        bounds();
    else if (argc == 2 && strcmp(argv[1], "blocked") == 0)
        set_while_blocked();
    else
        coroutines();
    return 0;
}
