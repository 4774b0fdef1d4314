/* C++ programs with OpenTelemetry's API: finding them, and loading what publishes their spans.
 *
 * The API is headers alone, so each object that uses it has the name of its class for contexts. It
 * is searched for in what is loaded, once in each object, and only where an object registers
 * destructors of a thread's variables, as every user of the API does. Where it is found,
 * libotelprof-cpp.so is loaded (cpp_context.h in common/).
 */
#ifndef OTELPROF_CPP_PROGRAMS_H
#define OTELPROF_CPP_PROGRAMS_H

/* Looks at what came since the last time. Under the quiesce lock. Context: the helper. */
void cpp_programs_look(void);

/* A process has one context: where somebody else's appears, that which is published for what was
 * found is taken back. Under the quiesce lock. Context: the helper. */
void cpp_programs_give_way(void);

/* That one, to be known from others. Context: any. */
const struct process_context_publication *cpp_programs_publication(void);

/* A forked child publishes for itself what its parent published. Context: the forked child. */
void cpp_programs_after_fork(void);

#endif
