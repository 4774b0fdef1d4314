/* Compares the names of the settings in the environment and the configuration files. Context: any.
 * Async-signal-safe: yes. */
#ifndef OTELPROF_CONFIG_NAMES_H
#define OTELPROF_CONFIG_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the first `size` bytes of `name` are a setting's name: one of options.def, in
 * either form, or OTEL_CONFIG_FILE. */
bool config_names_have(const char *name, size_t size);

/* Returns the first value of `name` among `entries` ("NAME=value", ending in NULL; NULL: none), as
 * getenv() does. NULL: there is no such variable, or it is empty, which counts as unset by the
 * specification. */
const char *config_names_value(const char *const *entries, const char *name);

#endif
