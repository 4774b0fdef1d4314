/* Continues a handler on another thread than the one that it began on, as user threads do that
 * signals preempt. Argument: "plain", or "on stack" for SA_ONSTACK. Prints whether the second
 * thread has the alternate stack that it had, by the kernel: once the handler has returned, or,
 * without SA_ONSTACK, once a sample has been taken, too. */
#include "cpu_sample.h"

#include <pthread.h>
#include <stdatomic.h>
#include <ucontext.h>

enum { STACK = 256 << 10 };

static ucontext_t in_handler;
static ucontext_t first;
static ucontext_t second;
static ucontext_t fiber;
static bool is_plain;
static stack_t before;
static _Atomic bool has_returned;

static void leave(int number) {
    (void)number;
    swapcontext(&in_handler, &first);
}

static void run_fiber(void) {
    stack_t after;
    raise(SIGUSR1);
    if (is_plain)
        TAKE_CPU_SAMPLE();
    bare_call(SYS_sigaltstack, 0, (long)&after, 0, 0, 0, 0);
    printf("kept %d\n", after.ss_sp == before.ss_sp && after.ss_size == before.ss_size &&
                            after.ss_flags == before.ss_flags);
    atomic_store(&has_returned, true);
    setcontext(&second);
}

static void *begin_handler(void *unused) {
    cpu_samples_await();
    getcontext(&fiber);
    fiber.uc_stack = (stack_t){.ss_sp = malloc(STACK), .ss_size = STACK};
    makecontext(&fiber, run_fiber, 0);
    swapcontext(&first, &fiber);
    return unused;
}

static void *continue_handler(void *unused) {
    cpu_samples_await();
    bare_call(SYS_sigaltstack, 0, (long)&before, 0, 0, 0, 0);
    getcontext(&second);
    if (!atomic_load(&has_returned))
        setcontext(&in_handler);
    return unused;
}

static pthread_barrier_t step;

static void *begin_and_wait(void *unused) {
    begin_handler(unused);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    is_plain = argc < 2 || strcmp(argv[1], "plain") == 0;
    const struct sigaction action = {.sa_handler = leave, .sa_flags = is_plain ? 0 : SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    pthread_barrier_init(&step, NULL, 2);
    pthread_create(&threads[0], NULL, begin_and_wait, NULL);
    pthread_barrier_wait(&step);
    pthread_create(&threads[1], NULL, continue_handler, NULL);
    pthread_join(threads[1], NULL);
    pthread_barrier_wait(&step);
    pthread_join(threads[0], NULL);
    return 0;
}
