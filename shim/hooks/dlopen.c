/* Hooks dlopen and dlmopen, to bind the libraries that would be bound past our exports
 * (deep_binding.h), and to close the module interval, so that earlier unseen loads do not make the
 * next ones uncertain (capture/unwind/modules.h).
 *
 * The result of dlopen() depends on the object that calls it: its RPATH, RUNPATH, $ORIGIN and
 * namespace. So the hook jumps to the next dlopen(), which sees the caller's frame. Only if none of
 * these matters, the hook calls it, and binds the library immediately; otherwise binding waits for
 * the next occasion. */
#include "arch_forward.h"
#include "capture/binding/bound_calls.h"
#include "capture/binding/deep_binding.h"
#include "capture/capture.h"
#include "capture/symbols/loader_state.h"
#include "capture/symbols/next_symbol.h"
#include "dynamic_object.h"
#include "otelprof.h"
#include "process/helper.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef void *dlopen_function(const char *path, int flags);
typedef void *dlmopen_function(Lmid_t space, const char *path, int flags);

/* Fails as dlopen() does: used with glibc before 2.34, if libdl is not loaded. */
static void *no_dlopen(const char *path, int flags) {
    (void)path;
    (void)flags;
    return NULL;
}

static void *no_dlmopen(Lmid_t space, const char *path, int flags) {
    (void)space;
    return no_dlopen(path, flags);
}

/* Holds the next dlopen(), which the first call resolves, because most programs load no library. */
static _Atomic(dlopen_function *) next_dlopen;

static dlopen_function *real_dlopen(void) {
    dlopen_function *found = atomic_load(&next_dlopen);
    void *const next = found ? NULL : next_symbol("dlopen");
    if (next)
        memcpy(&found, &next, sizeof found);
    atomic_store(&next_dlopen, found);
    return found ? found : no_dlopen;
}

static dlmopen_function *real_dlmopen(void) {
    dlmopen_function *found;
    void *const next = next_symbol("dlmopen");
    memcpy(&found, &next, sizeof found);
    return found ? found : no_dlmopen;
}

static void *open_and_bind(const char *path, int flags) {
    void *const handle = real_dlopen()(path, flags);
    if (handle)
        deep_binding_bind_before_use();
    else
        deep_binding_catch_up();
    return handle;
}

/* --- does the caller matter? --- */

struct question {
    uintptr_t caller;
    bool found;          /* the caller's object was found */
    bool is_executable;  /* the object is the first of the list */
    bool has_own_search; /* the object has search paths of its own */
    /* an object has an RPATH, which also applies to the libraries that it loads */
    bool others_search;
    size_t count;
};

static int search_paths_check(struct dl_phdr_info *info, size_t size, void *arg) {
    struct question *const question = arg;
    const bool is_executable = question->count++ == 0;
    const struct object_segments segments = object_segments_of(info);
    const struct dynamic_object dynamic = dynamic_object_of(&segments);
    const bool has_rpath = dynamic_entry(&dynamic, DT_RPATH) != NULL;
    (void)size;
    question->others_search |= has_rpath && !is_executable;
    if (object_spans(info, question->caller)) {
        question->found = true;
        question->is_executable = is_executable;
        question->has_own_search = has_rpath || dynamic_entry(&dynamic, DT_RUNPATH);
    }
    return 0;
}

/* Returns true if the result of dlopen() may depend on the caller. The loader searches the
 * executable's RPATH for every library; its RUNPATH and $ORIGIN only for libraries that the
 * executable names without a folder. */
static bool caller_matters(const char *path, const void *caller) {
    struct question question = {.caller = (uintptr_t)caller};
    if (!path || strchr(path, '$'))
        return true;
    loader_state_visit(search_paths_check, &question);
    const bool searches = !strchr(path, '/') && question.has_own_search;
    const bool passes_on = !question.is_executable && question.others_search;
    return !question.found || searches || passes_on;
}

/* --- the hooks --- */

static void dlopen_expect_scan(void) {
    if (!atomic_load(&capture.armed) || (profiler_tls.inside && !profiler_tls.is_profiler_thread))
        return;
    modules_refresh_before_load(&capture.modules);
    const bool binds = bound_calls_expect();
    if (context_expect(&capture.contexts) || binds)
        helper_wake();
}

/* Returns the function to which the hook jumps. */
__attribute__((used)) static dlopen_function *dlopen_choose(const char *path, int flags, long third,
                                                            const void *caller) {
    (void)third;
    deep_binding_catch_up();
    dlopen_expect_scan();
    if (!(flags & RTLD_DEEPBIND) || !deep_binding_expect())
        return real_dlopen();
    return caller_matters(path, caller) ? real_dlopen() : open_and_bind;
}

ARCH_DEFINE_CHOSEN_CALL(dlopen, dlopen_choose)

__attribute__((used)) static dlmopen_function *choose_dlmopen(void) {
    (void)deep_binding_expect();
    dlopen_expect_scan();
    return real_dlmopen();
}

ARCH_DEFINE_CHOSEN_CALL(dlmopen, choose_dlmopen)
