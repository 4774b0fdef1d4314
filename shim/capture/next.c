#include "next.h"
#include "first_page.h"
#include "next_symbol.h"

#include <stdatomic.h>
#include <string.h>

IN_FIRST_PAGE static struct next_calls calls;
IN_FIRST_PAGE static _Atomic bool calls_ready; /* set twice with the same values at worst */

static void look_up(const char *name, void *call) {
    void *const found = next_symbol(name);
    memcpy(call, &found, sizeof found);
}

static void resolve_calls(void) {
    look_up("pthread_create", &calls.pthread_create);
    look_up("thrd_create", &calls.thrd_create);
    look_up("dlclose", &calls.dlclose);
    look_up("sigaction", &calls.sigaction);
    look_up("signal", &calls.signal);
    look_up("sysv_signal", &calls.sysv_signal);
    look_up("sigset", &calls.sigset);
    look_up("sigignore", &calls.sigignore);
    look_up("siginterrupt", &calls.siginterrupt);
    look_up("sigwaitinfo", &calls.sigwaitinfo);
    look_up("sigtimedwait", &calls.sigtimedwait);
    look_up("signalfd", &calls.signalfd);
    look_up("sigaltstack", &calls.sigaltstack);
    look_up("unshare", &calls.unshare);
    look_up("chroot", &calls.chroot);
    look_up("setns", &calls.setns);
    look_up("setitimer", &calls.setitimer);
    look_up("getenv", &calls.getenv);
    look_up("secure_getenv", &calls.secure_getenv);
    look_up("syscall", &calls.syscall);
    look_up("clone", &calls.clone);
    look_up("fork", &calls.fork);
    look_up("exit", &calls.exit);
}

bool next_calls_are_known(void) {
    return atomic_load_explicit(&calls_ready, memory_order_acquire);
}

const struct next_calls *next_calls(void) {
    if (!next_calls_are_known()) {
        resolve_calls();
        atomic_store_explicit(&calls_ready, true, memory_order_release);
    }
    return &calls;
}

const struct next_calls *next_library_calls(void) {
    if (!next_calls()->pthread_create || !next_calls()->dlclose)
        resolve_calls();
    return &calls;
}
