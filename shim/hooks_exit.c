/* exit and the return from main: our end comes before every exit handler.
 *
 * Libraries that our helper uses register handlers of their own (OpenSSL's cleanup, for one) at
 * moments that we do not choose, perhaps this very one; once they have run, nothing may touch those
 * libraries. So the helper is brought to rest first, whatever order the handlers have. What calls
 * exit inside libc (the end of the last thread) still meets the handler that lifecycle.c registers.
 * _exit runs no handlers, but is a last occasion too.
 */
#include "capture/capture.h"
#include "capture/next.h"
#include "capture/next_symbol.h"
#include "capture/sampler.h"
#include "lifecycle.h"
#include "otelprof.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void),
                           void (*)(void), void *);

/* Called by the executable's _start; declared by no header. */
int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

static main_function *program_main; /* written once, before there is a second thread */

static void main_thread_is_gone(void *unused) {
    (void)unused;
    thread_is_gone();
}

/* Our frame is left out of every stack. The handler runs only if main ends by pthread_exit or is
 * cancelled: the process then lives on until its last thread ends. */
static int main_and_end(int argc, char **argv, char **envp) {
    int status;
    sampler_check_signal(); /* what is linked with -pg has had its handler set from within libc */
    pthread_cleanup_push(main_thread_is_gone, NULL);
    status = program_main(argc, argv, envp);
    pthread_cleanup_pop(0);
    lifecycle_end();
    return status;
}

OTELPROF_EXPORT int __libc_start_main(main_function *program, int argc, char **argv,
                                      void (*init)(void), void (*fini)(void),
                                      void (*rtld_fini)(void), void *stack_end) {
    void *const found = next_symbol("__libc_start_main");
    start_function *start;
    memcpy(&start, &found, sizeof start);
    if (!libc_is_complete())
        return start(program, argc, argv, init, fini, rtld_fini, stack_end);
    program_main = program;
    return start(main_and_end, argc, argv, init, fini, rtld_fini, stack_end);
}

/* A child of fork() that has done its work mostly ends so (Python's multiprocessing), and what it
 * recorded would be lost. Not from a signal handler, nor where the stack is not known to its end:
 * there the process may be in any state. In a child of vfork() lifecycle_end() does nothing. */
static void end_before_exit_at_once(void) {
    if (!atomic_load(&capture.armed) || !own_tls.thread || own_tls.inside ||
        !lifecycle_may_send() || !thread_is_calm())
        return;
    lifecycle_end();
}

static __attribute__((noreturn)) void exit_at_once(int status) {
    end_before_exit_at_once();
    for (;;)
        syscall(SYS_exit_group, status);
}

OTELPROF_EXPORT __attribute__((noreturn)) void _exit(int status) {
    exit_at_once(status);
}

OTELPROF_EXPORT __attribute__((noreturn)) void _Exit(int status) {
    exit_at_once(status);
}

OTELPROF_EXPORT __attribute__((noreturn)) void exit(int status) {
    lifecycle_end();
    next_calls()->exit(status); /* looked up before: a child of a bare clone(2) may not */
    __builtin_unreachable();
}
