/* Hooks getenv and secure_getenv: on the profiler's threads they read a copy of the environment
 * that was made at the start; on all other threads they forward.
 *
 * Libraries that the exporter needs read the environment when they are loaded and at every transfer
 * (libcurl for its proxies). The program may change it at the same time, which is correct in a
 * program with one thread: but glibc before 2.41 then frees the array that getenv is reading, a
 * program's own putenv frees the texts, and a program's own getenv (bash) uses tables of its
 * own. */
#include "capture/capture.h"
#include "capture/kernel/profiler_memory.h"
#include "capture/symbols/next.h"
#include "entry.h"
#include "hooks.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Holds consecutive "name=value" strings, with an empty string at the end. Written once, before
 * there is a second thread. A forked child inherits them, unlike the profiler's tables. */
static char *kept;

/* Returns true for the variable of a proxy, such as http_proxy: it names neither a file nor
 * code. */
static bool is_proxy(const char *entry) {
    static const char *const ends[] = {"_proxy=", "_PROXY="};
    const size_t name = strcspn(entry, "=") + 1;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (name > strlen(ends[i]) &&
            strncmp(entry + name - strlen(ends[i]), ends[i], strlen(ends[i])) == 0)
            return true;
    return false;
}

static size_t environment_bytes(const char *const *environment) {
    size_t size = 1;
    for (size_t i = 0; environment[i]; i++)
        size += strlen(environment[i]) + 1;
    return size;
}

void hooks_environment_keep(const char *const *environment, bool proxies_alone) {
    if (!environment)
        return;
    kept = profiler_memory_take(whole_pages(environment_bytes(environment)));
    char *at = kept;
    for (size_t i = 0; at && environment[i]; i++)
        if (environment[i][0] && (!proxies_alone || is_proxy(environment[i])))
            at = stpcpy(at, environment[i]) + 1;
}

static char *kept_value(const char *name) {
    const size_t size = strlen(name);
    for (char *at = kept; at && *at; at += strlen(at) + 1)
        if (strncmp(at, name, size) == 0 && at[size] == '=')
            return at + size + 1;
    return NULL;
}

/* Hooks getenv. Declared here because the declaration in <stdlib.h> promises that the name is never
 * NULL. */
HOOK char *hook_getenv(const char *name) __asm__("getenv");
HOOK char *hook_secure_getenv(const char *name) __asm__("secure_getenv");

char *hook_getenv(const char *name) {
    if (profiler_tls.is_profiler_thread)
        return kept_value(name);
    return next_calls()->getenv(name);
}

char *hook_secure_getenv(const char *name) {
    if (profiler_tls.is_profiler_thread)
        return kept_value(name);
    return next_calls()->secure_getenv(name);
}
