#include "definition.h"
#include "object_symbols.h"

#include <stddef.h>
#include <string.h>

bool definition_comes_before_ours(const char *name) {
    const struct link_map *const own = object_symbols_own();
    for (const struct link_map *object = own ? own->l_prev : NULL; object; object = object->l_prev)
        if (object_symbols_defines(object, name))
            return true;
    return false;
}

/* --- threads --- */

/* Threads of POSIX, C11 or OpenMP; or libc's malloc below a mere wrapper. */
static bool is_of_threads(const char *name) {
    static const char *const beginnings[] = {"pthread_", "__pthread_",    "thrd_",
                                             "mtx_",     "sem_",          "GOMP_",
                                             "__kmpc_",  "__libc_malloc", "dlsym"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

bool definition_is_for_one_thread(const char *name) {
    const struct link_map *const executable = object_symbols_first();
    return executable && object_symbols_defines(executable, name) &&
           !object_symbols_refers(executable, is_of_threads);
}
