/* Hooks syscall: handles the system calls by number whose functions are hooked, and system calls
 * that have no function in libc. The table (hooked.def) lists the calls and their routes:
 *
 *   PASSES    is only forwarded, like every call that is not in the table
 *   WATCHED   the family checks the arguments before, and the helper may follow after
 *   GIVES_UP  the calling thread alone gives up rights: the helper gives them up, too
 *   COPIES    copies the process, unless the arguments share memory or change the stack (clone.c)
 *   ENTERS    enters namespaces, or another root (namespaces.c)
 *
 * System calls made by an instruction of the program's own are not seen. */
#include "by_number.h"

#include "arch_entry.h"
#include "arch_forward.h"
#include "bare_syscall.h"
#include "capture/symbols/next.h"
#include "otelprof.h"

#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446 /* Linux 5.13 */
#endif

/* --- the table --- */

enum route { PASSES, WATCHED, COPIES, ENTERS };

/* Lists routes by number, which the assembler of syscall() reads. */
#define ROUTE_NO_NUMBER(call)
#define ROUTE_PASSES(call)
#define ROUTE_WATCHED(call)                              [SYS_##call] = WATCHED,
#define ROUTE_GIVES_UP(call)                             [SYS_##call] = WATCHED,
#define ROUTE_COPIES(call)                               [SYS_##call] = COPIES,
#define ROUTE_ENTERS(call)                               [SYS_##call] = ENTERS,
#define BY_NUMBER(context, number, call)                 ROUTE_##number(call)
#define HOOKED(family, context, next, number, call, ...) ROUTE_##number(call)
__attribute__((used)) static const uint8_t routes[] = {
#include "hooked.def"
};

#define BEFORE_NO_NUMBER(call)
#define BEFORE_PASSES(call)
#define BEFORE_WATCHED(call)                                                                       \
    case SYS_##call:                                                                               \
        return before_##call(a, b, c, d);
#define BEFORE_GIVES_UP(call)                                                                      \
    case SYS_##call:                                                                               \
        return THEN_COMPARE;
#define BEFORE_COPIES(call)
#define BEFORE_ENTERS(call)

static enum then syscall_before_number(long number, unsigned long a, unsigned long b,
                                       unsigned long c, unsigned long d) {
    switch (number) {
#define BY_NUMBER(context, number, call)                 BEFORE_##number(call)
#define HOOKED(family, context, next, number, call, ...) BEFORE_##number(call)
#include "hooked.def"
    default:
        return THEN_NOTHING;
    }
}

/* Handles a WATCHED call; the assembler of syscall() calls this function. */
long watched_syscall(long number, long a, long b, long c, long d, long e, long f);

ARCH_ANY_STACK __attribute__((used)) long watched_syscall(long number, long a, long b, long c,
                                                          long d, long e, long f) {
    const enum then then = syscall_before_number(number, (unsigned long)a, (unsigned long)b,
                                                 (unsigned long)c, (unsigned long)d);
    return hooks_after(then, next_syscall(number, a, b, c, d, e, f));
}

/* --- the function --- */

__attribute__((used)) void hooks_syscall_finish_init(void) {
    next_syscall = next_calls()->syscall ? next_calls()->syscall : bare_syscall;
}

/* Forwards the first call, if the constructor has not resolved next_syscall yet. */
ARCH_DEFINE_FORWARD(first_syscall, hooks_syscall_finish_init, next_syscall, 0)

syscall_function *next_syscall = (syscall_function *)first_syscall;

/* Hooks syscall(). A call without a route continues unchanged, with its registers and its caller's
 * stack, because a child of a clone may return on another stack. */
ARCH_DEFINE_SYSCALL(next_syscall, routes, WATCHED, watched_syscall, ENTERS,
                    hooks_namespaces_by_number, hooks_clone_copies, hooks_clone_by_number)
