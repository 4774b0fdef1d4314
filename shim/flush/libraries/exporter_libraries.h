/* Lists the libraries that the exporter brought into the process and that only the exporter runs.
 *
 * libotelprof-flush.so's constructor runs inside its dlopen, under the loader's lock, before the
 * constructors of its libraries (it is linked with -z initfirst, but nothing here needs that
 * order). At that moment the loader's list from libotelprof-flush.so on has exactly the libraries
 * that came with it. A library that the program had before precedes it in the list, and is the
 * program's.
 *
 * The exporter's libraries must not run at the end of the process. There the loader would call
 * their destructors, and libc their registered exit handlers, on the program's thread: perhaps
 * during one of the helper's transfers, or under locks that a signal handler of the program waits
 * for. So their destructors are removed from the loader's data, and their later registrations
 * (OpenSSL's cleanup) are ignored. A library that the program opens itself later has no destructors
 * either: the loader does not report which caller opened it, and destructors only free memory that
 * the process is about to give back.
 */
#ifndef OTELPROF_EXPORTER_LIBRARIES_H
#define OTELPROF_EXPORTER_LIBRARIES_H

#include <link.h>
#include <stdbool.h>

/* Lists the exporter's libraries and keeps their code from running at the end of the process.
 * Returns false if there are none: libotelprof-flush.so's sources are linked into a program.
 * Context: its constructor. */
bool exporter_libraries_protect(void);

/* Visits the exporter's libraries, under the loader's lock. Context: flush. */
void exporter_libraries_visit(void (*visit)(const struct dl_phdr_info *library, void *arg),
                              void *arg);

/* Visits all other objects, libotelprof.so included, under the loader's lock. Context: flush. */
void exporter_libraries_visit_others(void (*visit)(const struct dl_phdr_info *object, void *arg),
                                     void *arg);

/* Returns true if one of the exporter's libraries needs the library of this name. Takes the
 * loader's lock. Context: flush. */
bool exporter_libraries_need(const char *soname);

/* Returns true if the end of the process leaves everything that the exporter uses intact, so that
 * no thread need wait for it; false if a library shared with the program will be torn down, or a
 * library of the exporter's could not be protected. Context: flush. */
bool exporter_libraries_outlive_exit(void);

#endif
