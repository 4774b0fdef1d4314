#include "preload_source.h"

#include "capture/symbols/next_symbol.h"
#include "capture/symbols/object_symbols.h"
#include "config_names.h"
#include "dynamic_object.h"
#include "given_variables.h"
#include "glob.h"

#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char name[] = "LD_PRELOAD";

/* Returns true for "libotelprof.so" in any folder, with or without a version, and for the name by
 * which the loader found the profiler. */
static bool names_profiler(const char *entry, size_t size) {
    static const char profiler_name[] = "libotelprof.so";
    const size_t length = sizeof profiler_name - 1;
    const char *base = entry;
    for (size_t i = 0; i < size; i++)
        if (entry[i] == '/')
            base = entry + i + 1;
    const size_t left = (size_t)(entry + size - base);
    if (left >= length && memcmp(base, profiler_name, length) == 0 &&
        (left == length || base[length] == '.'))
        return true;
    /* accepts the file name by which the loader found the profiler, too, because a copy or a link
     * may have another name */
    const struct link_map *const object = object_symbols_own();
    const char *const own = object ? glob_base_name(object->l_name) : "";
    return left > 0 && strlen(own) == left && memcmp(base, own, left) == 0;
}

/* Returns true if the value of LD_PRELOAD names the profiler; ld.so(8): entries are separated by
 * spaces or colons. */
static bool list_names_profiler(const char *value) {
    static const char separators[] = " :";
    while (*value) {
        const size_t size = strcspn(value, separators);
        if (names_profiler(value, size))
            return true;
        value += size;
        value += strspn(value, separators);
    }
    return false;
}

bool preload_is_named(const char *const *environment) {
    const char *const value = config_names_value(environment, name);
    return value && list_names_profiler(value);
}

/* --- the variables given to exec --- */

static void check_variable(void *found, const char *text, uint64_t hash) {
    (void)hash;
    const char *const entries[] = {text, NULL};
    *(bool *)found = *(bool *)found || preload_is_named(entries);
}

/* Returns the first variable that the kernel put on the stack: after the arguments, and before the
 * program's name (Linux: fs/exec.c, bprm_execve's copies). Returns NULL if the layout is different.
 * Addresses between AT_RANDOM and AT_EXECFN belong to the stack, and are mapped.
 */
static const char *first_variable(char *const *arguments, const char *end) {
    const char *const above = (const char *)(uintptr_t)getauxval(AT_RANDOM);
    if (!arguments || !arguments[0] || !above || !end)
        return NULL;
    while (arguments[1])
        arguments++;
    if (arguments[0] <= above || arguments[0] >= end)
        return NULL;
    return arguments[0] + strlen(arguments[0]) + 1;
}

bool preload_was_given(char *const *arguments) {
    const char *const end = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    const char *at = first_variable(arguments, end);
    bool found = false;
    if (!at) /* the layout is different: reads the variables from /proc instead */
        return given_variables((pid_t)syscall(SYS_getpid), check_variable, &found) && found;
    for (; at < end && !found; at += strlen(at) + 1)
        check_variable(&found, at, 0);
    return found;
}

/* --- linked --- */

static bool needs_profiler(const struct link_map *object) {
    const struct dynamic_object dynamic = dynamic_object_of_map(object);
    const char *const strings = (const char *)dynamic_address(&dynamic, DT_STRTAB);
    for (size_t i = 0; strings && i < dynamic.count; i++) {
        const char *const needed = strings + dynamic.entries[i].d_un.d_val;
        if (dynamic.entries[i].d_tag == DT_NEEDED && names_profiler(needed, strlen(needed)))
            return true;
    }
    return false;
}

static bool is_linked(void) {
    const struct link_map *object = object_symbols_first();
    while (object && !needs_profiler(object))
        object = object->l_next;
    return object != NULL;
}

/* --- all sources --- */

enum preload_source preload_source_unnamed(char *const *arguments) {
    if (preload_was_given(arguments))
        return PRELOAD_VARIABLE;
    return is_linked() || !next_symbols_follow_profiler() ? PRELOAD_LINKED : PRELOAD_HOST;
}
