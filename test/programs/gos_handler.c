/* Is a program with the note of Go's linker that does as Go's runtime does with cgo. It queries the
 * alternate stack by a system call, takes the one that it finds or sets one of its own, and sets
 * its handler by libc's function. Prints whether the handler runs on the stack that the thread has
 * taken, on the main thread and on another, while the stack pointer is on a third stack. */
#define _GNU_SOURCE
#include "cpu_sample.h"

#include <pthread.h>
#include <ucontext.h>

enum { ROOM = 1 << 16 };

__asm__(".pushsection .note.go.buildid,\"a\",@note\n"
        ".balign 4\n"
        ".long 4, 4, 4\n"
        ".ascii \"Go\\0\\0\"\n"
        ".ascii \"test\"\n"
        ".popsection\n");

static __thread stack_t taken;
static __thread const char *place;

static void on_signal(int number, siginfo_t *info, void *context) {
    const char *const here = context;
    (void)number, (void)info;
    place = here > (char *)taken.ss_sp && here < (char *)taken.ss_sp + taken.ss_size
                ? "on its signal stack"
                : "elsewhere";
}

static __thread ucontext_t goroutine, before;

static void run_goroutine(void) {
    raise(SIGUSR1);
}

static void *run(void *name) {
    cpu_samples_await();
    bare_call(SYS_sigaltstack, 0, (long)&taken, 0, 0, 0, 0);
    if (taken.ss_flags & SS_DISABLE) {
        taken = (stack_t){.ss_sp = malloc(ROOM), .ss_size = ROOM};
        bare_call(SYS_sigaltstack, (long)&taken, 0, 0, 0, 0, 0);
    }
    getcontext(&goroutine);
    goroutine.uc_stack = (stack_t){.ss_sp = malloc(ROOM), .ss_size = ROOM};
    goroutine.uc_link = &before;
    makecontext(&goroutine, run_goroutine, 0);
    swapcontext(&before, &goroutine);
    printf("%s: %s\n", (const char *)name, place);
    return NULL;
}

int main(void) {
    const struct sigaction action = {.sa_sigaction = on_signal,
                                     .sa_flags = SA_SIGINFO | SA_ONSTACK};
    pthread_t thread;
    sigaction(SIGUSR1, &action, NULL);
    run("main");
    pthread_create(&thread, NULL, run, "thread");
    pthread_join(thread, NULL);
    return 0;
}
