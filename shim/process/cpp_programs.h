/* Finds C++ programs that use OpenTelemetry's API, and loads the library that publishes their
 * spans.
 *
 * The API consists of headers, so each object that uses it contains the name of its class for
 * contexts. Each loaded object that registers destructors of thread-local variables, as every user
 * of the API does, is searched for that name once. Once the name is found, libotelprof-cpp.so is
 * loaded (cpp_context.h in common/).
 */
#ifndef OTELPROF_CPP_PROGRAMS_H
#define OTELPROF_CPP_PROGRAMS_H

#include <stdbool.h>

/* Searches the objects loaded since the last call. Called under the quiesce lock. Returns false if
 * another thread is inside the loader, so that the search must be repeated. Context: the helper. */
bool cpp_programs_poll(void);

/* Unpublishes the profiler's process context if another context appears, because a process has one
 * context only. Called under the quiesce lock. Context: the helper. */
void cpp_programs_give_way(void);

/* Returns the profiler's own context, so that readers can distinguish it from other contexts.
 * Context: any.
 */
const struct process_context_publication *cpp_programs_publication(void);

/* Makes a forked child publish its own process context, because it does not share its parent's.
 * Context: the forked child. */
void cpp_programs_after_fork(void);

#endif
