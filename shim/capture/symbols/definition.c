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

static bool begins_with_one_of(const char *name, const char *const *beginnings, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* Returns true for names of thread functions of POSIX, C11 or OpenMP. */
static bool is_of_threads(const char *name) {
    static const char *const beginnings[] = {"pthread_", "__pthread_", "thrd_",  "mtx_",
                                             "sem_",     "GOMP_",      "__kmpc_"};
    return begins_with_one_of(name, beginnings, sizeof beginnings / sizeof *beginnings);
}

/* Returns true for names by which a mere wrapper reaches libc's malloc. */
static bool is_of_wrapper(const char *name) {
    static const char *const beginnings[] = {"__libc_malloc", "dlsym"};
    return begins_with_one_of(name, beginnings, sizeof beginnings / sizeof *beginnings);
}

static bool defines_whole_allocator(const struct link_map *object) {
    static const char *const names[] = {"malloc", "calloc", "realloc", "free"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!object_symbols_defines(object, names[i]))
            return false;
    return true;
}

/* Returns true even if the executable imports dlsym, as a wrapper does, if it defines a whole
 * allocator: GNU Common Lisp has one of its own, on its garbage-collected heap, and uses dlsym for
 * other purposes. */
bool definition_of_malloc_is_for_one_thread(void) {
    const struct link_map *const executable = object_symbols_first();
    if (!executable || !object_symbols_defines(executable, "malloc") ||
        object_symbols_refers(executable, is_of_threads))
        return false;
    return defines_whole_allocator(executable) || !object_symbols_refers(executable, is_of_wrapper);
}
