/* Checks whether the program sets up a library that the exporter would use in the same process.
 *
 * A soname is loaded only once in a process: a libcurl that the program is linked to, or loads
 * later, is also the exporter's. Some of its functions (for its allocator, its TLS library) have an
 * effect only before the library is initialised, and then for the whole process. If the profiler
 * initialised the library first, these functions would have no effect, and the program would free
 * memory of another allocator with its own; if the program did so first, the library would call the
 * program's allocator on the profiler's thread. So the exporter does not touch the library if any
 * object of the program refers to such a function, in any copy of the library. A lookup by dlsym()
 * is not noticed. The bundle's libcurl is private, and no program can claim it. Context: flush,
 * under the quiesce lock.
 */
#ifndef OTELPROF_CLAIMED_LIBRARY_H
#define OTELPROF_CLAIMED_LIBRARY_H

/* Returns the name of the function of libcurl, or of OpenSSL if libcurl uses that, to which an
 * object of the program refers; NULL: no object does so far. Cheap unless objects were loaded since
 * the last call. An unloaded object still counts, because its settings remain. */
const char *claimed_library_function(void);

#endif
