/* Binds the exporter's libraries to each other.
 *
 * The loader searches the program first: an executable that contains OpenSSL and exports its names
 * (-rdynamic, or for plug-ins) defines SSL_CTX_new also for the exporter's libcurl, which would
 * call functions of another version, or of another library, on the profiler's thread. So each
 * reference of the exporter's libraries that leads into the program is redirected to the definition
 * in the exporter's own libraries, before the constructor of any of these runs
 * (libotelprof-flush.so is linked with -z initfirst). References to libc's functions stay as the
 * loader bound them, because an object needs one allocator, and a program may replace its C
 * library's functions for the whole process. RTLD_DEEPBIND would bind these to libc, too.
 *
 * A library that the program had before belongs to the program, so its references are not changed:
 * if they lead into the program, the exporter must not run at all. Context: flush.
 */
#ifndef OTELPROF_EXPORTER_BINDINGS_H
#define OTELPROF_EXPORTER_BINDINGS_H

#include <stdbool.h>

/* Redirects the references of all libraries that came with libotelprof-flush.so. Context: its
 * constructor. */
void exporter_bindings_take_over(void);

/* Returns true if any reference was redirected: a library that is loaded later would be bound to
 * the program's functions before it can be redirected. */
bool exporter_bindings_conflict(void);

/* Returns a function of the program that the exporter would still call: a library that it shares
 * with the program refers to it, or a reference could not be redirected. NULL: there is none. */
const char *exporter_bindings_foreign_function(void);

#endif
