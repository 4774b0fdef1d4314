/* What takes the ground from under the helper.
 *
 * unshare and setns: the kernel lets a process enter a user namespace only while it has one thread.
 * Sandboxes do so early: in the first second, while the helper has loaded nothing, it is ended
 * before and created again after. Later the call fails as it does in any program with a second
 * thread. A time namespace it enters by setns, likewise; a mount namespace only by setns and only
 * where no other shares its root and working directory, as threads do. chroot: behind it there is
 * nothing to load; daemons do it early. All of them may also be called by their numbers (Perl can
 * do it in no other way). */
#include "hooks_namespaces.h"

#include "capture/next.h"
#include "helper.h"
#include "hooks_sandbox.h"
#include "lifecycle.h"
#include "otelprof.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ALONE_TO_UNSHARE = CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM };
enum { NEW_TIME = 0x80 }; /* CLONE_NEWTIME of Linux 5.6 */
enum { ALONE_TO_ENTER = CLONE_NEWUSER | CLONE_NEWNS | NEW_TIME };

static bool withdraw_to_unshare(int kinds) {
    return (kinds & ALONE_TO_UNSHARE) && helper_withdraw();
}

static bool withdraw_to_enter(int kind) {
    return (kind == 0 || (kind & ALONE_TO_ENTER)) && helper_withdraw();
}

static void load_early(void) {
    const int saved = errno;
    lifecycle_load_early();
    errno = saved;
}

/* --- by name --- */

OTELPROF_EXPORT int unshare(int kinds) {
    const bool withdrawn = withdraw_to_unshare(kinds);
    const int result = next_calls()->unshare(kinds);
    if (withdrawn)
        helper_return();
    return result;
}

OTELPROF_EXPORT int setns(int descriptor, int kind) {
    const bool withdrawn = withdraw_to_enter(kind);
    const int result = next_calls()->setns(descriptor, kind);
    if (withdrawn)
        helper_return();
    return result;
}

OTELPROF_EXPORT int chroot(const char *path) {
    load_early();
    return next_calls()->chroot(path);
}

/* --- by number --- */

static bool before_number(long number, long a, long b) {
    switch (number) {
    case SYS_unshare:
        return withdraw_to_unshare((int)a);
    case SYS_setns:
        return withdraw_to_enter((int)b);
    default: /* of chroot and pivot_root */
        load_early();
        return false;
    }
}

long hooks_namespaces_by_number(long number, long a, long b, long c, long d, long e, long f) {
    const bool withdrawn = before_number(number, a, b);
    const long result = next_syscall(number, a, b, c, d, e, f);
    if (withdrawn)
        helper_return();
    return result;
}
