/* How the settings of common/options.def are called in a configuration file's
 * distribution.otelprof: in lower case, without OTEL_PROFILER_, OTEL_PROFILES_, OTEL_PROFILE_ or
 * OTEL_EXPORTER_OTLP_ before it. OTEL_PROFILER_CPU_FREQUENCY is cpu_frequency. Which of them may
 * stand there is declared_settings.def. Context: flush.
 */
#ifndef OTELPROF_DECLARED_SETTINGS_H
#define OTELPROF_DECLARED_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

enum { SETTING_NAME_BYTES = 64 };

enum declared_setting {
    SETTING_UNKNOWN,
    SETTING_FOLLOWED,
    SETTING_OF_THE_START, /* decided when the process starts: the variable alone sets it */
};

/* What the key `key` is. `variable`: the name of the environment variable that means the same in
 * profiles alone (OTEL_EXPORTER_OTLP_PROFILES_X where there are two), unless it is unknown. */
enum declared_setting declared_setting_find(const char *key, char variable[SETTING_NAME_BYTES]);

/* The key of a variable; false: it has none, because the model has another place for it. */
bool declared_setting_key(const char *variable, char key[SETTING_NAME_BYTES]);

#endif
