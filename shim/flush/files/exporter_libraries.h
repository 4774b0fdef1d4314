/* The libraries that the exporter brought into the process, which nobody else runs.
 *
 * libotelprof-flush.so's constructor is the last of its dlopen, and the loader's lock is held: what
 * stands in the loader's list from libotelprof-flush.so on came with it. What it needs and the
 * program had before stands further ahead, and is the program's.
 *
 * They have nothing to do at the end of the process, where the loader would run their destructors,
 * and libc the exit handlers that they have registered, on the program's thread: in the middle of a
 * transfer perhaps, that the helper is at; under locks that a signal handler of the program's may
 * wait for. So their destructors are taken out of what the loader will look at, and what they
 * register from then on (OpenSSL's cleanup) is not. A library that the program opens itself later
 * keeps none, either: the loader does not tell who has opened it, and all that they do is to free
 * memory that the process is about to give back.
 */
#ifndef OTELPROF_EXPORTER_LIBRARIES_H
#define OTELPROF_EXPORTER_LIBRARIES_H

#include <link.h>
#include <stdbool.h>

/* Visits them, under the loader's lock. Context: flush. */
void exporter_libraries_visit(void (*visit)(const struct dl_phdr_info *library, void *arg),
                              void *arg);

/* Visits what is not among them, libotelprof.so included, in the same way. */
void exporter_libraries_visit_others(void (*visit)(const struct dl_phdr_info *object, void *arg),
                                     void *arg);

/* Whether the end of the process leaves alone whatever the exporter uses, so that nobody need wait
 * for it. false: a library that the program shares will be torn down, or one of ours could not be
 * spared. Context: flush. */
bool exporter_libraries_outlive_exit(void);

#endif
