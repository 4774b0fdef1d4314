/* Who had us loaded: LD_PRELOAD, by the environment, or root, by /etc/ld.so.preload.
 *
 * A program of more rights than its caller's (setuid) has LD_PRELOAD taken away by the loader, so
 * that its children are loaded without; OTEL_* and all else stays. Where we are in such a child
 * nevertheless, by /etc/ld.so.preload, the process may be root's and the variables another user's.
 */
#ifndef OTELPROF_PRELOAD_SOURCE_H
#define OTELPROF_PRELOAD_SOURCE_H

#include <stdbool.h>

/* Whether LD_PRELOAD, as the process was given it, names libotelprof.so (by any path or version):
 * then the variables are those of whoever had us loaded. false also where we are linked to the
 * program. `environment` ends in NULL; NULL: not known. Context: calm, at start. */
bool preload_is_named(const char *const *environment);

/* The same of the variables that exec gave to the process (given_variables.h): a library that is
 * initialised before us may have unset LD_PRELOAD, so that no child inherits it. They are the
 * kernel's word: whom the loader took LD_PRELOAD from (AT_SECURE) could not give it to a child.
 * Four system calls. Context: calm, at start. */
bool preload_was_given(void);

#endif
