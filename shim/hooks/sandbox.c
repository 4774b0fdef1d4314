/* Hooks calls by which a program restricts itself and gives up rights: prctl, capset, and seccomp
 * and Landlock by number.
 *
 * In strict mode the kernel kills a thread for any call but read, write and exit. A filter is
 * evaluated before it is installed (seccomp_filter.h). If the filter would kill for a call of ours,
 * the profiler does nothing more on that thread, or in that process if the filter applies to all
 * its threads. A main thread that a sandbox may kill alone, or that ends by exit(2), is watched.
 * System calls made by an instruction of the program's own are not seen. */
#include "by_number.h"

#include "bare_syscall.h"
#include "capture/cpu/masked_threads.h"
#include "capture/cpu/sampler.h"
#include "capture/kernel/signals_blocked.h"
#include "capture/kernel/wait.h"
#include "capture/unwind/stack_memory.h"
#include "entry.h"
#include "process/helper_rights.h"
#include "process/lifecycle.h"
#include "process/quiesce.h"
#include "process/seccomp_filter.h"
#include "refused_file.h"
#include "safe_read.h"

#include <errno.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, MOST_INSTRUCTIONS = BPF_MAXINSNS };

/* --- before a filter is installed --- */

static bool is_readable_range(const void *start, size_t size) {
    const uintptr_t end = (uintptr_t)start + size - 1;
    for (uintptr_t at = (uintptr_t)start; at <= end; at = (at & ~(uintptr_t)(PAGE - 1)) + PAGE)
        if (!memory_is_readable(at))
            return false;
    return memory_is_readable(end);
}

/* Returns true if the kernel may accept the filter. Programs pass NULL, which the kernel refuses,
 * to check whether filters are supported at all. */
static bool is_filter(const struct sock_fprog *program) {
    return program && is_readable_range(program, sizeof *program) && program->len > 0 &&
           program->len <= MOST_INSTRUCTIONS && program->filter &&
           is_readable_range(program->filter, program->len * sizeof *program->filter);
}

/* Returns true if the filter spares all work of this helper's beside exporting. `verdicts`, here
 * and below: those of seccomp_filter_verdicts() for the filter. */
static bool spares_further_work(unsigned verdicts) {
    return (!helper_serves_requests() || verdicts & SECCOMP_SPARES_SERVING) &&
           (!helper_writes_to_syslog() || verdicts & SECCOMP_SPARES_SYSLOG);
}

/* Returns true if no part of the profiler can continue behind the filter, because it restricts the
 * helper, too. */
static bool is_the_end(unsigned verdicts, bool of_all) {
    const bool follows = helper_must_follow();
    if (!of_all && !follows)
        return false;
    return !(verdicts & SECCOMP_SPARES_THREAD) || !spares_further_work(verdicts) ||
           (of_all && !(verdicts & SECCOMP_SPARES_HELPER)) ||
           (follows && !(verdicts & SECCOMP_LETS_HELPER_FOLLOW));
}

static bool no_copy_is_under_way(void *unused) {
    (void)unused;
    return !safe_read_copies();
}

/* Forbids the kernel's copies in samples, and waits, within a bound, until the copies on other
 * threads have ended: such a sample has found no filter around its thread, and the new filter would
 * kill the thread in the middle of its copies. */
static void end_copies_of_others(void) {
    enum { COPY_ROUNDS = 2000 };
    safe_read_forbid_copies();
    (void)wait_for_rounds(no_copy_is_under_way, NULL, COPY_ROUNDS);
}

/* Notes the effects of a filter that is about to be installed. Returns the bits of enum then that
 * undo_filter() undoes. */
static unsigned see_filter(unsigned verdicts) {
    const bool may_log = verdicts & SECCOMP_SPARES_LOGGING;
    const bool may_start = verdicts & SECCOMP_LETS_HELPER_FOLLOW && spares_further_work(verdicts);
    const bool keeps = !(verdicts & SECCOMP_SPARES_HELPER_START);
    if (keeps)
        helper_keep();
    lifecycle_see_filter(may_log, may_start);
    return THEN_FORGET_FILTER | (may_log ? 0 : THEN_FORGET_NO_LOGGING) |
           (may_start ? 0 : THEN_FORGET_NO_START) | (keeps ? THEN_FORGET_KEEP : 0);
}

static void undo_filter(unsigned effects) {
    if (effects & THEN_FORGET_COPIES)
        safe_read_allow_copies();
    if (effects & THEN_FORGET_KEEP)
        helper_keep_no_more();
    if (effects & THEN_FORGET_FILTER)
        lifecycle_forget_filter(!(effects & THEN_FORGET_NO_LOGGING),
                                !(effects & THEN_FORGET_NO_START));
}

static enum then before_valid_filter(const struct sock_fprog *program, unsigned long flags) {
    const unsigned verdicts = seccomp_filter_verdicts(program);
    const bool of_all = flags & SECCOMP_FILTER_FLAG_TSYNC;
    const bool spared = verdicts & SECCOMP_SPARES_THREAD;
    const bool is_end = is_the_end(verdicts, of_all);
    if (of_all)
        end_copies_of_others();
    if (is_end)
        lifecycle_leave_process();
    else if (!spared)
        lifecycle_leave_thread(SIGSYS);
    const unsigned effects = see_filter(verdicts) | (of_all ? THEN_FORGET_COPIES : 0);
    if (!(verdicts & SECCOMP_SPARES_TIMERS))
        masked_threads_stop();
    if (!(verdicts & SECCOMP_SPARES_PENDING))
        sampler_leave_pending();
    if (!spared || !(verdicts & SECCOMP_SPARES_GIVING_WAY))
        signals_ask_no_more();
    if (verdicts & SECCOMP_KILLS_THREADS)
        lifecycle_may_end_unseen(SIGSYS, of_all);
    const unsigned gets_file = flags & SECCOMP_FILTER_FLAG_NEW_LISTENER ? THEN_GETS_FILE : 0;
    return (enum then)(effects | gets_file | (is_end || !spared ? THEN_NOTHING : THEN_FOLLOW));
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

enum then before_prctl(unsigned long option, unsigned long mode, unsigned long filter,
                       unsigned long unused) {
    (void)unused;
    if (option == PR_SET_NO_NEW_PRIVS) /* the helper has set this flag from its beginning */
        return THEN_COMPARE;
    if (option == PR_SET_DUMPABLE)
        return THEN_OPEN_AGAIN;
    if (option != PR_SET_SECCOMP)
        return THEN_NOTHING;
    if (mode == SECCOMP_MODE_STRICT)
        return before_strict_mode();
    return mode == SECCOMP_MODE_FILTER ? before_filter((const struct sock_fprog *)filter, 0)
                                       : THEN_NOTHING;
}

enum then before_seccomp(unsigned long operation, unsigned long flags, unsigned long filter,
                         unsigned long unused) {
    (void)unused;
    if (operation == SECCOMP_SET_MODE_STRICT)
        return before_strict_mode();
    return operation == SECCOMP_SET_MODE_FILTER
               ? before_filter((const struct sock_fprog *)filter, flags)
               : THEN_NOTHING;
}

enum then before_landlock_restrict_self(unsigned long a, unsigned long b, unsigned long c,
                                        unsigned long d) {
    (void)a, (void)b, (void)c, (void)d;
    return THEN_FOLLOW;
}

/* --- after rights were given up --- */

long hooks_after(enum then then, long result) {
    const int saved = errno;
    const unsigned what = then & THEN_DO;
    const bool done = result == 0 || (result > 0 && then & THEN_GETS_FILE);
    if (!done)
        undo_filter(then);
    if (done && (what == THEN_COMPARE || what == THEN_OPEN_AGAIN))
        refused_files_ask_again();
    if (done && (what == THEN_FOLLOW || (what == THEN_COMPARE && helper_rights_exceed())))
        helper_follow();
    errno = saved;
    return result;
}

/* --- prctl --- */

/* Hooks prctl. Declared here because the declaration in <sys/prctl.h> is variadic; libc's function
 * always takes four arguments. */
HOOK int hook_prctl(int option, unsigned long second, unsigned long third, unsigned long fourth,
                    unsigned long fifth) __asm__("prctl");

int hook_prctl(int option, unsigned long second, unsigned long third, unsigned long fourth,
               unsigned long fifth) {
    const enum then then = before_prctl((unsigned long)option, second, third, fourth);
    return (int)hooks_after(then, bare_syscall(SYS_prctl, option, (long)second, (long)third,
                                               (long)fourth, (long)fifth, 0));
}

/* --- capset --- */

/* Hooks capset(), which no header of libc declares. */
HOOK int capset(void *header, const void *data);

int capset(void *header, const void *data) {
    return (int)hooks_after(THEN_COMPARE,
                            bare_syscall(SYS_capset, (long)header, (long)data, 0, 0, 0, 0));
}
