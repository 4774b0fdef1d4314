/* Determines how the profiler was loaded: by LD_PRELOAD, from the environment, or by root, through
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
    PRELOAD_VARIABLE, /* LD_PRELOAD names the profiler: the user that set it has set the variables,
                         too */
    PRELOAD_LINKED, /* an object of the program needs the profiler, or called dlopen: it wants to be
                       profiled */
    PRELOAD_HOST,   /* host-wide: every process of the machine has the profiler, wanted or not */
};

/* Returns true if the process's LD_PRELOAD now names libotelprof.so (by any path or version).
 * `environment` ends in NULL; NULL: unknown. No system call. Context: calm, at start. */
bool preload_is_named(const char *const *environment);

/* Does the same for the variables given to exec: a library that is initialised earlier may have
 * unset LD_PRELOAD, so that no child inherits it. They come from the kernel: a process whose
 * LD_PRELOAD the loader removed (AT_SECURE) could not pass it to a child. `arguments` are main's,
 * as the loader passes them: the kernel put the variables after the last one. No system call, but
 * four if `arguments` is NULL, or they lie elsewhere. Context: calm, at start. */
bool preload_was_given(char *const *arguments);

/* Returns the source if LD_PRELOAD does not name the profiler now. Context: calm, at start. */
enum preload_source preload_source_unnamed(char *const *arguments);

#endif
