/* Ends the profiler when main returns, before any exit handler runs (exit.c says why). The end must
 * precede libc's exit, which main's caller calls by a name that no preload sees.
 *
 * So in a profiled process this file, not libc, calls main, and then exit. libc's caller of main
 * uses only main's status: Free Pascal's programs return with a different stack pointer, and with
 * registers changed that a function must preserve. So data that is needed after main is in a
 * variable here, not on the stack or in registers. There is one main, on one thread. */
#include "arch_main.h"
#include "capture/capture.h"
#include "capture/cpu/sampler.h"
#include "capture/symbols/next.h"
#include "capture/symbols/next_symbol.h"
#include "capture/thread_life.h"
#include "entry.h"
#include "process/helper.h"
#include "process/lifecycle.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void),
                           void (*)(void), void *);

/* Declares the function that the executable's _start calls; no header declares it. */
int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

/* Holds the state of main_and_end(). */
struct main_call {
    main_function *program;
    uint64_t argc, argv, envp;
    uint64_t caller; /* the return address of main */
    uint64_t stack;  /* the stack slot of that return address */
    __pthread_unwind_buf_t cleanup;
};
struct main_call main_call;
void main_begins(void);
void main_is_watched(void);
_Noreturn void main_has_returned(int status);
_Noreturn void main_thread_ends(void);

__attribute__((used)) void main_begins(void) {
    helper_main_begins();
    /* checks again, because libc itself sets the signal's handler in a program linked with -pg */
    sampler_check_signal();
}

/* Registers the cleanup as pthread_cleanup_push() does, but with a buffer that is not on the
 * stack. */
__attribute__((used)) void main_is_watched(void) {
    __pthread_register_cancel(&main_call.cleanup);
}

/* Ends the process as libc does when main returns. The hook's frame stays, with its cleanup
 * registered, because an exit handler may end the thread. */
__attribute__((used)) _Noreturn void main_has_returned(int status) {
    lifecycle_end();
    next_calls()->exit(status);
    __builtin_unreachable();
}

/* Ends the main thread alone, if main, or an exit handler after it, ends by pthread_exit or is
 * cancelled: the process continues until its last thread ends. */
__attribute__((used)) _Noreturn void main_thread_ends(void) {
    thread_is_gone();
    __pthread_unwind_next(&main_call.cleanup);
}

/* Defines main_and_end(), whose frame is in no recorded stack. */
ARCH_DEFINE_MAIN_CALL(main_and_end, main_call, main_begins, main_is_watched, main_thread_ends,
                      main_has_returned)

RARE static start_function *find_start(void) {
    void *const found = next_symbol("__libc_start_main");
    start_function *start;
    memcpy(&start, &found, sizeof start);
    return start;
}

FAST_HOOK int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void),
                                void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
    start_function *const start = find_start();
    /* True if the constructor has not run yet, or if this is not glibc. The first operand touches
     * no page that an excluded process has not touched. */
    if (atomic_load(&capture_is_off) || !atomic_load(&capture.armed))
        return start(program, argc, argv, init, fini, rtld_fini, stack_end);
    main_call.program = program;
    return start(main_and_end, argc, argv, init, fini, rtld_fini, stack_end);
}
