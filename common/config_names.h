/* The names of the settings, as the environment and the configuration files have them. Context:
 * any. Async-signal-safe: yes. */
#ifndef OTELPROF_CONFIG_NAMES_H
#define OTELPROF_CONFIG_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the first `size` bytes of `name` are one: of options.def, in either form, or
 * OTEL_CONFIG_FILE. */
bool config_names_have(const char *name, size_t size);

/* The value of `name` among `entries` ("NAME=value", ending in NULL; NULL: none): where it appears
 * first, as getenv() has it. NULL: it does not, or is empty, which the specification treats alike.
 */
const char *config_names_value(const char *const *entries, const char *name);

#endif
