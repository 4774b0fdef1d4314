/* A copy of the OTEL_* variables that the settings were made of.
 *
 * A configuration file is read when the process has lived for a while, by the exporter, and its
 * settings meet the environment's. The program may have changed its environment by then, or written
 * its title over it.
 */
#ifndef OTELPROF_KEPT_VARIABLES_H
#define OTELPROF_KEPT_VARIABLES_H

/* NULL-terminated, in the same order, for the life of the process; a forked child has it, too.
 * NULL: no memory. Context: calm, once. */
const char *const *kept_variables(const char *const *environment);

#endif
