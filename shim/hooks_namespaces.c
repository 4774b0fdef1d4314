/* What takes the ground from under the helper.
 *
 * unshare and setns: the kernel lets a process enter a user namespace only while it has one thread.
 * Sandboxes do so early: in the first second, while the helper has loaded nothing, it is ended
 * before and created again after. Later the call fails as it does in any program with a second
 * thread. A mount namespace it enters only by setns and only where no other shares its root and
 * working directory, as threads do. chroot: behind it there is nothing to load; daemons do it
 * early. */
#include "capture/next.h"
#include "helper.h"
#include "lifecycle.h"
#include "otelprof.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

enum { ALONE_TO_UNSHARE = CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM };
enum { ALONE_TO_ENTER = CLONE_NEWUSER | CLONE_NEWNS };

OTELPROF_EXPORT int unshare(int kinds) {
    const bool withdrawn = (kinds & ALONE_TO_UNSHARE) && helper_withdraw();
    const int result = next_calls()->unshare(kinds);
    if (withdrawn)
        helper_return();
    return result;
}

OTELPROF_EXPORT int setns(int descriptor, int kind) {
    const bool withdrawn = (kind == 0 || (kind & ALONE_TO_ENTER)) && helper_withdraw();
    const int result = next_calls()->setns(descriptor, kind);
    if (withdrawn)
        helper_return();
    return result;
}

OTELPROF_EXPORT int chroot(const char *path) {
    const int saved = errno;
    lifecycle_load_early();
    errno = saved;
    return next_calls()->chroot(path);
}
