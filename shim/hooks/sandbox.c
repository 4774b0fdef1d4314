/* prctl and syscall: how a program locks itself up by seccomp, and what it gives up by number.
 *
 * In strict mode a thread may read, write and exit from then on, and is killed by any other call; a
 * filter is tried first (seccomp_filter.h). Where a call of ours would kill, nothing of ours
 * happens any more on that thread, or in that process if the filter is put on all its threads. A
 * main thread that a sandbox may kill alone, or that ends by exit(2), is watched. What enters the
 * kernel by an instruction of its own is not seen.
 */
#include "sandbox.h"
#include "clone.h"
#include "namespaces.h"

#include "bare_syscall.h"
#include "capture/cpu/masked_threads.h"
#include "capture/cpu/sampler.h"
#include "capture/symbols/next.h"
#include "capture/unwind/stack_memory.h"
#include "mask.h"
#include "otelprof.h"
#include "process/helper_rights.h"
#include "process/helper_suspend.h"
#include "process/lifecycle.h"
#include "process/seccomp_filter.h"
#include "signal.h"

#include <errno.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, MOST_INSTRUCTIONS = BPF_MAXINSNS };

/* Read by the assembler below. */
long watched_syscall(long number, long a, long b, long c, long d, long e, long f);

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446 /* Linux 5.13 */
#endif

/* What the helper does when the call has succeeded. */
enum then {
    THEN_NOTHING,
    THEN_COMPARE, /* follows if it has more capabilities */
    THEN_FOLLOW,
};

/* --- what is about to be installed --- */

static bool is_readable(const void *start, size_t size) {
    const uintptr_t end = (uintptr_t)start + size - 1;
    for (uintptr_t at = (uintptr_t)start; at <= end; at = (at & ~(uintptr_t)(PAGE - 1)) + PAGE)
        if (!memory_is_readable(at))
            return false;
    return memory_is_readable(end);
}

/* false: the kernel will refuse it. Programs ask so, with NULL, whether there are filters at all.
 */
static bool is_filter(const struct sock_fprog *program) {
    return program && is_readable(program, sizeof *program) && program->len > 0 &&
           program->len <= MOST_INSTRUCTIONS && program->filter &&
           is_readable(program->filter, program->len * sizeof *program->filter);
}

/* Whether nothing of ours can go on behind it: a helper is behind it, too. */
static bool is_the_end(const struct sock_fprog *program, unsigned long flags, bool spared) {
    if (flags & SECCOMP_FILTER_FLAG_TSYNC)
        return !spared || !seccomp_filter_spares_helper(program);
    return helper_must_follow() && (!spared || !seccomp_filter_lets_helper_follow(program));
}

static enum then before_valid_filter(const struct sock_fprog *program, unsigned long flags) {
    const bool spared = seccomp_filter_spares_thread(program);
    const bool is_end = is_the_end(program, flags, spared);
    if (is_end)
        lifecycle_leave_process();
    else if (!spared)
        lifecycle_leave_thread(SIGSYS);
    if (!seccomp_filter_spares_timers(program))
        masked_threads_stop();
    if (!seccomp_filter_spares_pending(program))
        sampler_leave_pending();
    if (seccomp_filter_kills_threads(program))
        lifecycle_may_end_unseen(SIGSYS, flags & SECCOMP_FILTER_FLAG_TSYNC);
    return is_end || !spared ? THEN_NOTHING : THEN_FOLLOW;
}

static enum then before_filter(const struct sock_fprog *program, unsigned long flags) {
    enum then then = THEN_NOTHING;
    const int saved = errno;
    if (!lifecycle_is_out() && is_filter(program))
        then = before_valid_filter(program, flags);
    errno = saved;
    return then;
}

static enum then before_strict_mode(void) {
    if (helper_must_follow())
        lifecycle_leave_process();
    lifecycle_leave_thread(SIGKILL);
    return THEN_NOTHING;
}

static enum then before_prctl(unsigned long option, unsigned long mode, unsigned long filter) {
    if (option == PR_SET_NO_NEW_PRIVS) /* which the helper has from its beginning */
        return THEN_COMPARE;
    if (option != PR_SET_SECCOMP)
        return THEN_NOTHING;
    if (mode == SECCOMP_MODE_STRICT)
        return before_strict_mode();
    return mode == SECCOMP_MODE_FILTER ? before_filter((const struct sock_fprog *)filter, 0)
                                       : THEN_NOTHING;
}

static enum then before_seccomp(unsigned long operation, unsigned long flags,
                                unsigned long filter) {
    if (operation == SECCOMP_SET_MODE_STRICT)
        return before_strict_mode();
    return operation == SECCOMP_SET_MODE_FILTER
               ? before_filter((const struct sock_fprog *)filter, flags)
               : THEN_NOTHING;
}

/* --- what was given up --- */

static long after(enum then then, long result) {
    const int saved = errno;
    if (result == 0 && (then == THEN_FOLLOW || (then == THEN_COMPARE && helper_rights_exceed())))
        helper_follow();
    errno = saved;
    return result;
}

/* --- prctl --- */

/* Not <sys/prctl.h>'s, which takes any number of arguments; libc's takes four in any case. */
OTELPROF_EXPORT int own_prctl(int option, unsigned long second, unsigned long third,
                              unsigned long fourth, unsigned long fifth) __asm__("prctl");

int own_prctl(int option, unsigned long second, unsigned long third, unsigned long fourth,
              unsigned long fifth) {
    const enum then then = before_prctl((unsigned long)option, second, third);
    return (int)after(then, bare_syscall(SYS_prctl, option, (long)second, (long)third, (long)fourth,
                                         (long)fifth, 0));
}

/* --- capset --- */

/* In no header of libc's. */
OTELPROF_EXPORT int capset(void *header, const void *data);

int capset(void *header, const void *data) {
    return (int)after(THEN_COMPARE, bare_syscall(SYS_capset, (long)header, (long)data, 0, 0, 0, 0));
}

/* --- syscall --- */

/* The six registers of arguments, and eight bytes to align the stack. */
#define PUSH_ARGUMENTS                                                                             \
    "pushq %rdi\n\tpushq %rsi\n\tpushq %rdx\n\t"                                                   \
    "pushq %rcx\n\tpushq %r8\n\tpushq %r9\n\t"                                                     \
    "subq $8, %rsp\n\t"                                                                            \
    ".cfi_adjust_cfa_offset 56\n\t"
#define POP_ARGUMENTS                                                                              \
    "addq $8, %rsp\n\t"                                                                            \
    "popq %r9\n\tpopq %r8\n\tpopq %rcx\n\t"                                                        \
    "popq %rdx\n\tpopq %rsi\n\tpopq %rdi\n\t"                                                      \
    ".cfi_adjust_cfa_offset -56\n\t"

__attribute__((used)) void hooks_sandbox_settle(void) {
    next_syscall = next_calls()->syscall ? next_calls()->syscall : bare_syscall;
}

/* The first call, where the constructor has not looked: with its registers and its caller's stack,
 * as below. */
__attribute__((naked)) static long
first_syscall(__attribute__((unused)) long number, __attribute__((unused)) long a,
              __attribute__((unused)) long b, __attribute__((unused)) long c,
              __attribute__((unused)) long d, __attribute__((unused)) long e,
              __attribute__((unused)) long f) {
    __asm__ volatile(PUSH_ARGUMENTS "call hooks_sandbox_settle\n\t" POP_ARGUMENTS
                                    "jmpq *next_syscall(%rip)");
}

syscall_function *next_syscall = first_syscall;

static enum then before_number(long number, unsigned long a, unsigned long b, unsigned long c,
                               unsigned long d) {
    switch (number) {
    case SYS_seccomp:
        return before_seccomp(a, b, c);
    case SYS_prctl:
        return before_prctl(a, b, c);
    case SYS_landlock_restrict_self:
        return THEN_FOLLOW;
    case SYS_rt_sigprocmask:
        hooks_mask_by_number((long)a, (const void *)b, d);
        return THEN_NOTHING;
    case SYS_exit:
        lifecycle_may_end_unseen(W_EXITCODE((int)a & 0xff, 0), false);
        return THEN_NOTHING;
    case SYS_rt_sigaction:
        hooks_signal_before_number((int)a, (const void *)b);
        return THEN_NOTHING;
    case SYS_capset:
    case SYS_setuid: /* by number ids are set on the calling thread alone */
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setgroups:
    case SYS_setresuid:
    case SYS_setresgid:
        return THEN_COMPARE;
    default: /* what asks for ids */
        return THEN_NOTHING;
    }
}

__attribute__((used)) long watched_syscall(long number, long a, long b, long c, long d, long e,
                                           long f) {
    const enum then then = before_number(number, (unsigned long)a, (unsigned long)b,
                                         (unsigned long)c, (unsigned long)d);
    return after(then, next_syscall(number, a, b, c, d, e, f));
}

/* From setuid to setresgid the numbers are those of calls about ids, with up to three arguments.
 * Every other call goes on as it came, with its registers and its caller's stack: a child of a
 * clone may come back on another. Pushed are the six registers of arguments, and eight bytes to
 * align the stack. */
OTELPROF_EXPORT __attribute__((naked)) long syscall(__attribute__((unused)) long number, ...) {
    __asm__ volatile(
        "cmpq %[seccomp], %%rdi\n\tje watched_syscall\n\t"
        "cmpq %[sigprocmask], %%rdi\n\tje watched_syscall\n\t"
        "cmpq %[prctl], %%rdi\n\tje watched_syscall\n\t"
        "cmpq %[exit], %%rdi\n\tje watched_syscall\n\t"
        "cmpq %[rt_sigaction], %%rdi\n\tje watched_syscall\n\t"
        "cmpq %[capset], %%rdi\n\tje watched_syscall\n\t"
        "cmpq %[landlock], %%rdi\n\tje watched_syscall\n\t"
        "leaq -%c[setuid](%%rdi), %%r11\n\t"
        "cmpq $%c[setresgid] - %c[setuid], %%r11\n\tjbe watched_syscall\n\t"
        "cmpq %[clone], %%rdi\n\tje 1f\n\t"
        "cmpq %[clone3], %%rdi\n\tje 1f\n\t"
        "cmpq %[fork], %%rdi\n\tje 1f\n\t"
        "cmpq %[unshare], %%rdi\n\tje hooks_namespaces_by_number\n\t"
        "cmpq %[setns], %%rdi\n\tje hooks_namespaces_by_number\n\t"
        "cmpq %[chroot], %%rdi\n\tje hooks_namespaces_by_number\n\t"
        "cmpq %[pivot_root], %%rdi\n\tje hooks_namespaces_by_number\n\t"
        "jmpq *next_syscall(%%rip)\n"
        "1:\n\t"
        "pushq %%rdi\n\tpushq %%rsi\n\tpushq %%rdx\n\t"
        "pushq %%rcx\n\tpushq %%r8\n\tpushq %%r9\n\t"
        "subq $8, %%rsp\n\t"
        ".cfi_adjust_cfa_offset 56\n\t"
        "call hooks_clone_copies\n\t"
        "addq $8, %%rsp\n\t"
        "popq %%r9\n\tpopq %%r8\n\tpopq %%rcx\n\t"
        "popq %%rdx\n\tpopq %%rsi\n\tpopq %%rdi\n\t"
        ".cfi_adjust_cfa_offset -56\n\t"
        "testb %%al, %%al\n\t"
        "jne hooks_clone_by_number\n\t"
        "jmpq *next_syscall(%%rip)"
        :
        : [capset] "i"(SYS_capset), [landlock] "i"(SYS_landlock_restrict_self),
          [setuid] "i"(SYS_setuid), [setresgid] "i"(SYS_setresgid), [seccomp] "i"(SYS_seccomp),
          [prctl] "i"(SYS_prctl), [rt_sigaction] "i"(SYS_rt_sigaction),
          [sigprocmask] "i"(SYS_rt_sigprocmask), [exit] "i"(SYS_exit), [clone] "i"(SYS_clone),
          [clone3] "i"(SYS_clone3), [fork] "i"(SYS_fork), [unshare] "i"(SYS_unshare),
          [setns] "i"(SYS_setns), [chroot] "i"(SYS_chroot), [pivot_root] "i"(SYS_pivot_root));
}
