/* Hooks setuid and its like.
 *
 * libc makes every thread of the process perform the same call, and ends the process if the call
 * succeeds on one thread and fails on another. But each thread has its own capabilities: a program
 * may have kept some on its one thread across a change of user (setpriv, capsh), but not on our
 * helper. So if the two differ in the capabilities that these calls need, the helper is suspended,
 * and resumes with those that the calling thread then has. */
#include "capture/symbols/next_symbol.h"
#include "entry.h"
#include "process/helper_rights.h"
#include "process/quiesce.h"
#include "refused_file.h"

#include <errno.h>
#include <grp.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* --- the next functions --- */

/* Holds the next functions, which the first call resolves, because most programs make none of these
 * calls. */
static struct {
#define HOOKED(...)
#define HOOKED_ID(number, call, name, parameters, arguments) int(*name) parameters;
#include "hooked.def"
    /* true once the functions are set; two threads may set them at once, to the same values */
    _Atomic bool are_known;
} next;

static void ids_resolve(const char *name, void *call) {
    void *const found = next_symbol(name);
    memcpy(call, &found, sizeof found);
}

static void know_next(void) {
    /* pairs with the release store below */
    if (atomic_load_explicit(&next.are_known, memory_order_acquire))
        return;
#define HOOKED(...)
#define HOOKED_ID(number, call, name, parameters, arguments) ids_resolve(#name, &next.name);
#include "hooked.def"
    /* pairs with the acquire load above: a thread that finds true finds the functions */
    atomic_store_explicit(&next.are_known, true, memory_order_release);
}

/* --- the hooks --- */

static bool ids_before(void) {
    const int saved = errno;
    know_next();
    const bool suspended =
        helper_rights_differ() && helper_quiesce(QUIESCE_GONE, QUIESCE_OR_DIE_MS);
    errno = saved;
    return suspended;
}

static void ids_after(bool suspended) {
    refused_files_ask_again();
    if (suspended)
        helper_resume(QUIESCE_GONE);
}

#define HOOKED(...)
#define HOOKED_ID(number, call, name, parameters, arguments)                                       \
    HOOK int name parameters {                                                                     \
        const bool suspended = ids_before();                                                       \
        const int result = next.name arguments;                                                    \
        ids_after(suspended);                                                                      \
        return result;                                                                             \
    }
#include "hooked.def"
