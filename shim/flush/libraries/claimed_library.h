/* Finds out whether the program sets up a library that the exporter would use in the same process.
 *
 * A soname is in a process once: a libcurl that the program is linked to, or loads later, is also
 * the exporter's. Some of its functions (for its allocator, its TLS library) have an effect only
 * before the library is initialised, and then for the whole process. If the profiler initialised
 * the library, it would ignore them, and the program would free with its own allocator memory from
 * another; if the program did, the library would call the program's allocator on the profiler's
 * thread. So the exporter does not touch the library if any object of the program refers to such a
 * function, whichever copy of the library that may lead to. A lookup by dlsym() goes unnoticed. The
 * bundle's libcurl is private, and no program can claim it. Context: flush, under the quiesce lock.
 */
#ifndef OTELPROF_CLAIMED_LIBRARY_H
#define OTELPROF_CLAIMED_LIBRARY_H

/* Returns the function of libcurl's, or of OpenSSL's if libcurl uses that, to which an object of
 * the program refers; NULL: none so far. Cheap unless objects were loaded since the last call. An
 * unloaded object still counts: its settings remain. */
const char *claimed_library_function(void);

#endif
