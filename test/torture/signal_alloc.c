/* Allocates in signal handlers, on alternate stacks and on the thread's own, and jumps out of a
 * computation in handlers. The program is safe by itself: it blocks its signals wherever it
 * allocates outside a handler. */
#define _GNU_SOURCE
#include "torture.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

enum { STACK_BYTES = 64 << 10 };

static __thread volatile sig_atomic_t handled;
static __thread sigjmp_buf out;

WORK(work_in_a_handler)
WORK(work_outside)

static void on_allocate(int number) {
    char *const block = malloc(2000 + (size_t)number);
    memset(block, number, 2000);
    work_in_a_handler(200);
    check(block[1999] == (char)number, "the contents of a handler's block");
    free(block);
    handled++;
}

static void on_jump(int number) {
    (void)number;
    siglongjmp(out, 1);
}

static void add_own(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGUSR1);
    sigaddset(set, SIGUSR2);
    sigaddset(set, SIGURG);
}

static void install(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    add_own(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void send_to_me(int number) {
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

static void block(int how) {
    sigset_t set;
    add_own(&set);
    pthread_sigmask(how, &set, NULL);
}

static void allocate(unsigned i) {
    block(SIG_BLOCK);
    void *volatile object = malloc(10 + i % 4000);
    free(object);
    block(SIG_UNBLOCK);
}

/* Sends SIGURG to this thread in the middle of the work. Its handler jumps out and never
 * returns. */
static void jump_out(unsigned i) {
    if (sigsetjmp(out, 1) == 0) {
        for (unsigned k = 0; k < 100; k++)
            if (k == i % 100)
                send_to_me(SIGURG);
        check(0, "the jump");
    }
}

static void *torture(void *unused) {
    void *const memory = malloc(STACK_BYTES);
    const stack_t stack = {.ss_sp = memory, .ss_size = STACK_BYTES};
    const stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&stack, NULL);
    for (unsigned i = 0; time_left(); i++) {
        const sig_atomic_t before = handled;
        send_to_me(i % 2 ? SIGUSR1 : SIGUSR2);
        check(handled == before + 1, "the handler ran");
        allocate(i);
        jump_out(i);
        work_outside(100);
    }
    sigaltstack(&none, NULL);
    free(memory);
    return unused;
}

int main(int argc, char **argv) {
    torture_begin(argc, argv);
    install(SIGUSR1, on_allocate, SA_ONSTACK | SA_RESTART);
    install(SIGUSR2, on_allocate, SA_RESTART);
    install(SIGURG, on_jump, SA_ONSTACK);
    run_threads(torture, THREADS);
    SHARE(work_in_a_handler);
    SHARE(work_outside);
    return torture_end();
}
