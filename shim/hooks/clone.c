/* Hooks clone and syscall for children that are made by clone(2) without shared memory, which no
 * fork handler sees.
 *
 * Such a child gets a copy of all locks, held or not, and of libc's list of threads; if our helper
 * was in that list but had not started, setgroups() and its like would wait in the child for ever.
 * So the hook waits until the helper is idle, and keeps it idle during the call. */
#include "by_number.h"

#include "arch_syscall.h"
#include "capture/symbols/next.h"
#include "capture/unwind/stack_memory.h"
#include "entry.h"
#include "process/lifecycle.h"
#include "process/termination.h"

#include <errno.h>
#include <linux/sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

static void clone_after(bool held) {
    const int saved = errno;
    if (held)
        lifecycle_after_bare_child();
    errno = saved;
}

/* --- by number --- */

static bool clone3_copies(const void *arguments) {
    struct clone_args call; /* has the fields of the first version of the kernel's struct */
    const uintptr_t first = (uintptr_t)arguments;
    const size_t size = CLONE_ARGS_SIZE_VER0;
    if (!memory_range_is_readable(first, size))
        return false; /* the kernel will refuse the call */
    memcpy(&call, arguments, size);
    return !(call.flags & CLONE_VM) && !call.stack;
}

__attribute__((used)) bool hooks_clone_copies(long number, uintptr_t first, uintptr_t second) {
    switch (number) {
    case SYS_clone:
        return !(first & CLONE_VM) && !second;
    case SYS_clone3:
        return clone3_copies((const void *)first);
    default:
        return number == SYS_fork;
    }
}

ARCH_ANY_STACK long hooks_clone_by_number(long number, long a, long b, long c, long d, long e,
                                          long f) {
    const bool held = lifecycle_before_bare_child();
    const long child = next_syscall(number, a, b, c, d, e, f);
    clone_after(held && child != 0);
    if (child == 0)
        termination_spare_first_process();
    return child;
}

/* --- by name --- */

/* Hooks clone. Declared here because the declaration in <sched.h> is variadic. The child does not
 * return from this function. */
HOOK int hook_clone(int (*run)(void *), void *stack, int flags, void *arg, void *parent, void *tls,
                    void *child) __asm__("clone");

struct first_process {
    int (*run)(void *);
    void *argument;
};

static int run_first_process(void *argument) {
    const struct first_process *const first = argument; /* this function runs in the copy */
    termination_spare_first_process();
    return first->run(first->argument);
}

int hook_clone(int (*run)(void *), void *stack, int flags, void *arg, void *parent, void *tls,
               void *child) {
    struct first_process first = {run, arg};
    const bool copies = !(flags & CLONE_VM);
    const bool is_first = copies && (flags & CLONE_NEWPID) && run && stack;
    const bool held = copies && lifecycle_before_bare_child();
    const int id = next_calls()->clone(is_first ? run_first_process : run, stack, flags,
                                       is_first ? &first : arg, parent, tls, child);
    clone_after(held);
    return id;
}
