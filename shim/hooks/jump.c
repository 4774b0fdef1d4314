/* Hooks __longjmp_chk, the longjmp() and siglongjmp() of programs that are built with
 * _FORTIFY_SOURCE. libc's function ends the process if the jump leads to a lower stack, unless the
 * kernel reports that the thread runs on its alternate signal stack and the jump leaves that stack.
 * But the kernel has the profiler's stack, and so reports that the thread does not run on its
 * alternate stack. If the jump leaves the alternate stack that the program has set, the hook jumps
 * without this check; every other jump is libc's to check. */
#include "arch_machine.h"
#include "capture/capture.h"
#include "capture/cpu/program_stack.h"
#include "capture/symbols/next_symbol.h"
#include "entry.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void jump_function(struct __jmp_buf_tag *target, int value);

/* Holds the next definitions of these functions. */
static struct {
    _Atomic(void *) checked_jump;
    _Atomic(void *) jump;
} next_jumps;

HOOK void __longjmp_chk(struct __jmp_buf_tag *target, int value) __attribute__((noreturn));

void __longjmp_chk(struct __jmp_buf_tag *target, int value) {
    const struct profiler_signal_stack *const own = profiler_tls.signal_stack;
    const bool leaves_alternate =
        own && program_stack_is_left(own, (uintptr_t)__builtin_frame_address(0),
                                     arch_jump_stack_pointer(target));
    void *const next = leaves_alternate
                           ? next_symbol_once(&next_jumps.jump, "longjmp")
                           : next_symbol_once(&next_jumps.checked_jump, "__longjmp_chk");
    jump_function *jump;
    memcpy(&jump, &next, sizeof jump);
    jump(target, value);
    abort();
}
