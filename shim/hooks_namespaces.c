/* What takes the ground from under the helper.
 *
 * unshare and setns: the kernel lets a process enter a user namespace only while it has one thread.
 * Sandboxes do so early: in the first second, while the helper has loaded nothing, it is ended
 * before and created again after. Later the call fails as it does in any program with a second
 * thread. chroot: behind it there is nothing to load; daemons do it early. */
#include "capture/next.h"
#include "helper.h"
#include "otelprof.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

static bool wants_one_thread(int kinds) {
    return kinds == 0 || (kinds & (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM));
}

OTELPROF_EXPORT int unshare(int kinds) {
    const bool withdrawn = kinds && wants_one_thread(kinds) && helper_withdraw();
    const int result = next_calls()->unshare(kinds);
    if (withdrawn)
        helper_return();
    return result;
}

OTELPROF_EXPORT int setns(int descriptor, int kind) {
    const bool withdrawn = wants_one_thread(kind) && helper_withdraw();
    const int result = next_calls()->setns(descriptor, kind);
    if (withdrawn)
        helper_return();
    return result;
}

OTELPROF_EXPORT int chroot(const char *path) {
    const int saved = errno;
    helper_load_early();
    errno = saved;
    return next_calls()->chroot(path);
}
