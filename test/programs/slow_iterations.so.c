/* Is preloaded behind the profiler: each reading of the loader's list by a profiler thread takes a
 * sixth of a second, as on a machine that has no time for that thread. Meanwhile helper_iterates is
 * 1. */
#define _GNU_SOURCE
#include "../../common/helper_name.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

_Atomic int helper_iterates;

typedef int visit(struct dl_phdr_info *info, size_t size, void *arg);

struct iteration {
    visit *visit;
    void *arg;
    bool has_slept;
};

static bool is_helper(void) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    return helper_name_is(name);
}

static int visit_slowly(struct dl_phdr_info *info, size_t size, void *arg) {
    struct iteration *const iteration = arg;
    const struct timespec a_while = {.tv_nsec = 160 * 1000 * 1000};
    if (!iteration->has_slept && is_helper()) {
        atomic_store(&helper_iterates, 1);
        nanosleep(&a_while, NULL);
        atomic_store(&helper_iterates, 0);
    }
    iteration->has_slept = true;
    return iteration->visit(info, size, iteration->arg);
}

int dl_iterate_phdr(visit *function, void *arg) {
    int (*const next)(visit *, void *) =
        (int (*)(visit *, void *))dlsym(RTLD_NEXT, "dl_iterate_phdr");
    struct iteration iteration = {function, arg, false};
    return next(visit_slowly, &iteration);
}
