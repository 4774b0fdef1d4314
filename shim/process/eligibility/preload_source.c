#include "preload_source.h"

#include "given_variables.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char name[] = "LD_PRELOAD=";

static const char *value_of(const char *const *environment) {
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, sizeof name - 1) == 0)
            return *environment + sizeof name - 1;
    return "";
}

/* "libotelprof.so", or with a version behind it, in any folder. */
static bool is_ours(const char *entry, size_t size) {
    static const char ours[] = "libotelprof.so";
    const size_t length = sizeof ours - 1;
    const char *base = entry;
    for (size_t i = 0; i < size; i++)
        if (entry[i] == '/')
            base = entry + i + 1;
    const size_t left = (size_t)(entry + size - base);
    return left >= length && memcmp(base, ours, length) == 0 &&
           (left == length || base[length] == '.');
}

/* ld.so(8): by spaces or colons. */
static bool has_ours(const char *value) {
    static const char separators[] = " :";
    while (*value) {
        const size_t size = strcspn(value, separators);
        if (is_ours(value, size))
            return true;
        value += size;
        value += strspn(value, separators);
    }
    return false;
}

bool preload_is_named(const char *const *environment) {
    return has_ours(value_of(environment));
}

static void look(void *found, const char *text, uint64_t hash) {
    (void)hash;
    if (strncmp(text, name, sizeof name - 1) == 0)
        *(bool *)found = *(bool *)found || has_ours(text + sizeof name - 1);
}

bool preload_was_given(void) {
    bool found = false;
    return given_variables((pid_t)syscall(SYS_getpid), look, &found) && found;
}
