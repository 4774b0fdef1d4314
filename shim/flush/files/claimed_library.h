/* Whether the program sets up by itself a library that the exporter would use in the same process.
 *
 * A soname is in a process once: a libcurl that the program is linked to, or loads later, is the
 * exporter's, too. Some of its functions (its allocator, its TLS library) have an effect only
 * before the library is initialised, and the whole process has it. Initialised by us, the library
 * ignores them, and the program frees by its own allocator what another gave; initialised by the
 * program, it would call the program's allocator on our thread. So the exporter does not touch the
 * library where any object of the program refers to such a function, whichever copy of the library
 * that may lead to. A name that is looked up by dlsym() is not seen. The bundle's libcurl is its
 * own, and nobody's to claim. Context: flush, under the quiesce lock.
 */
#ifndef OTELPROF_CLAIMED_LIBRARY_H
#define OTELPROF_CLAIMED_LIBRARY_H

/* Which function of libcurl's, or of OpenSSL's where libcurl uses that, an object of the program
 * refers to; NULL: none, so far. Cheap unless objects were loaded since the last call. An object
 * that has been unloaded counts on: what it has set remains. */
const char *claimed_library_function(void);

#endif
