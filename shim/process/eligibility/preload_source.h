/* Determines how the profiler was loaded: by LD_PRELOAD, by the program itself, or by root, through
 * /etc/ld.so.preload.
 *
 * In a program with more rights than its caller's (setuid) the loader removes LD_PRELOAD, so that
 * its children are loaded without the profiler; OTEL_* and all other variables stay. If
 * /etc/ld.so.preload loads the profiler into such a child nevertheless, the process may be root's
 * and the variables another user's.
 */
#ifndef OTELPROF_PRELOAD_SOURCE_H
#define OTELPROF_PRELOAD_SOURCE_H

#include <stdbool.h>

enum preload_source {
    /* LD_PRELOAD names the profiler, so the user that set it has set the variables, too */
    PRELOAD_VARIABLE,
    /* the program has chosen to be profiled: one of its objects needs the profiler, or called
     * dlopen */
    PRELOAD_LINKED,
    /* host-wide: every process of the machine has the profiler, even if its user does not want
     * it */
    PRELOAD_HOST,
};

/* Returns true if the process's LD_PRELOAD now names libotelprof.so (by any path or version).
 * `environment` ends in NULL; NULL: unknown. Makes no system call. Context: calm, at start. */
bool preload_is_named(const char *const *environment);

/* Returns true if LD_PRELOAD in the variables given to exec names libotelprof.so. A library that is
 * initialised earlier may have unset LD_PRELOAD since, so that no child inherits it. The kernel's
 * copy is reliable: a process whose LD_PRELOAD the loader removed (AT_SECURE) cannot have passed it
 * to this child. `arguments` are main's, as the loader passes them: the kernel put the variables
 * after the last one. Makes no system call; but reads /proc/self/environ if `arguments` is NULL, or
 * if the variables are elsewhere. Context: calm, at start. */
bool preload_was_given(char *const *arguments);

/* Returns the source of a profiler that LD_PRELOAD does not name now. Context: calm, at start. */
enum preload_source preload_source_unnamed(char *const *arguments);

#endif
