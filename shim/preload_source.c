#include "preload_source.h"

#include <string.h>

static const char *value_of(const char *const *environment) {
    static const char name[] = "LD_PRELOAD=";
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, sizeof name - 1) == 0)
            return *environment + sizeof name - 1;
    return "";
}

/* "libotelprof.so", or with a version behind it, in any folder. */
static bool is_ours(const char *entry, size_t size) {
    static const char name[] = "libotelprof.so";
    const size_t length = sizeof name - 1;
    const char *base = entry;
    for (size_t i = 0; i < size; i++)
        if (entry[i] == '/')
            base = entry + i + 1;
    const size_t left = (size_t)(entry + size - base);
    return left >= length && memcmp(base, name, length) == 0 &&
           (left == length || base[length] == '.');
}

/* ld.so(8): by spaces or colons. */
bool preload_is_named(const char *const *environment) {
    static const char separators[] = " :";
    const char *at = value_of(environment);
    while (*at) {
        const size_t size = strcspn(at, separators);
        if (is_ours(at, size))
            return true;
        at += size;
        at += strspn(at, separators);
    }
    return false;
}
