/* Keeps a copy of the OTEL_* variables that the settings were made of.
 *
 * The exporter reads a configuration file only when the process has lived for a while, and merges
 * it with the environment's settings. By then the program may have changed its environment, or
 * overwritten it with its title.
 */
#ifndef OTELPROF_KEPT_VARIABLES_H
#define OTELPROF_KEPT_VARIABLES_H

/* Returns a NULL-terminated copy in the same order, for the life of the process; a forked child has
 * it, too. Returns NULL without memory. Context: calm, once. */
const char *const *kept_variables(const char *const *environment);

#endif
