/* Hooks calls that change the process's view of files or ids.
 *
 * unshare and setns: while a process has several threads, the kernel refuses to let it enter a user
 * namespace, a time namespace by setns, or, because threads share root and working directory, a
 * mount namespace by setns. So the helper is suspended during such a call. The calling thread
 * enters any other namespace alone; the helper follows. After chroot, pivot_root, or in another
 * mount namespace, paths may lead to files of others, so the helper loads all its libraries before.
 * All of these calls may also be made by number (Perl can do it in no other way).
 */
#include "by_number.h"

#include "capture/capture.h"
#include "capture/symbols/next.h"
#include "entry.h"
#include "process/quiesce.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ALONE_TO_UNSHARE = CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM };
enum { NEW_TIME = 0x80 }; /* CLONE_NEWTIME of Linux 5.6 */
enum { ALONE_TO_ENTER = CLONE_NEWUSER | CLONE_NEWNS | NEW_TIME };
/* Lists namespaces that only the calling thread enters. CLONE_NEWPID is left out: it applies to
 * children, and a thread that has requested it can create no thread any more. */
enum {
    OF_THREAD =
        CLONE_NEWNS | CLONE_FS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP
};

static bool program_has_one_thread(void) {
    return atomic_load(&capture.live_threads) <= 1;
}

static bool suspend_for_root(void) {
    return helper_quiesce(QUIESCE_LOADED, QUIESCE_OR_DIE_MS);
}

static bool suspend_if(int alone) {
    return alone && helper_quiesce(QUIESCE_GONE, QUIESCE_TIMEOUT_MS);
}

/* Suspends the helper if needed. In a program of several threads unshare() changes the mounts of
 * the calling thread only, so the helper need not be suspended. */
static bool suspend_to_unshare(int kinds) {
    if ((kinds & CLONE_NEWNS) && program_has_one_thread())
        return suspend_for_root();
    return suspend_if(kinds & ALONE_TO_UNSHARE);
}

static bool suspend_to_enter(int kind) {
    if ((kind == 0 || (kind & CLONE_NEWNS)) && program_has_one_thread())
        return suspend_for_root();
    return suspend_if(kind & ALONE_TO_ENTER);
}

/* Lets the helper follow, after the system call: if `result` is 0, the calling thread has entered
 * namespaces of `kinds`. */
static void namespaces_after(bool suspended, int kinds, long result) {
    if (suspended)
        helper_resume(QUIESCE_GONE);
    else if (result == 0 && (kinds & OF_THREAD) && !(kinds & CLONE_NEWPID))
        helper_follow();
}

/* --- by name --- */

HOOK int unshare(int kinds) {
    const bool suspended = suspend_to_unshare(kinds);
    const int result = next_calls()->unshare(kinds);
    namespaces_after(suspended, kinds, result);
    return result;
}

HOOK int setns(int descriptor, int kind) {
    const bool suspended = suspend_to_enter(kind);
    const int result = next_calls()->setns(descriptor, kind);
    namespaces_after(suspended, kind, result);
    return result;
}

HOOK int chroot(const char *path) {
    const bool suspended = suspend_for_root();
    const int result = next_calls()->chroot(path);
    namespaces_after(suspended, 0, result);
    return result;
}

/* --- by number --- */

static bool namespaces_before_number(long number, long a, long b) {
    switch (number) {
    case SYS_unshare:
        return suspend_to_unshare((int)a);
    case SYS_setns:
        return suspend_to_enter((int)b);
    default: /* chroot or pivot_root */
        return suspend_for_root();
    }
}

static int kinds_of_number(long number, long a, long b) {
    if (number == SYS_unshare)
        return (int)a;
    return number == SYS_setns ? (int)b : 0;
}

/* Makes the call by number; the assembler of syscall() calls this function. */
ARCH_ANY_STACK __attribute__((used)) long
hooks_namespaces_by_number(long number, long a, long b, long c, long d, long e, long f) {
    const bool suspended = namespaces_before_number(number, a, b);
    const long result = next_syscall(number, a, b, c, d, e, f);
    namespaces_after(suspended, kinds_of_number(number, a, b), result);
    return result;
}
