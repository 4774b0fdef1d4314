/* Who had us loaded: LD_PRELOAD, by the environment, or root, by /etc/ld.so.preload.
 *
 * A program of more rights than its caller's (setuid) has LD_PRELOAD taken away by the loader, so
 * that its children are loaded without; OTEL_* and all else stays. Where we are in such a child
 * nevertheless, by /etc/ld.so.preload, the process may be root's and the variables another user's.
 */
#ifndef OTELPROF_PRELOAD_SOURCE_H
#define OTELPROF_PRELOAD_SOURCE_H

#include <stdbool.h>

enum preload_source {
    PRELOAD_VARIABLE, /* LD_PRELOAD names us: the variables are those of whoever had us loaded */
    PRELOAD_LINKED, /* an object of the program needs us, or called dlopen: it wants to be profiled
                     */
    PRELOAD_HOST,   /* host-wide: every process of the machine has us, wanted or not */
};

/* Whether LD_PRELOAD, as the process has it now, names libotelprof.so (by any path or version).
 * `environment` ends in NULL; NULL: not known. No system call. Context: calm, at start. */
bool preload_is_named(const char *const *environment);

/* The same of the variables that exec gave to the process: a library that is initialised before us
 * may have unset LD_PRELOAD, so that no child inherits it. They are the kernel's word: whom the
 * loader took LD_PRELOAD from (AT_SECURE) could not give it to a child. `arguments` are main's, as
 * the loader passes them: behind the last one the kernel put the variables. No system call; four
 * where `arguments` is NULL, or they lie elsewhere. Context: calm, at start. */
bool preload_was_given(char *const *arguments);

/* Which of the three it is, where LD_PRELOAD does not name us now. Context: calm, at start. */
enum preload_source preload_source_unnamed(char *const *arguments);

#endif
