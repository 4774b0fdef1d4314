/* Finds keys of a configuration file's distribution.otelprof. The key of a setting of
 * common/options.def is its variable's name in lower case, without the prefix OTEL_PROFILER_,
 * OTEL_PROFILES_, OTEL_PROFILE_ or OTEL_EXPORTER_OTLP_: cpu_frequency for
 * OTEL_PROFILER_CPU_FREQUENCY. declared_settings.def lists the allowed settings. Context: flush. */
#ifndef OTELPROF_DECLARED_SETTINGS_H
#define OTELPROF_DECLARED_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

enum { SETTING_NAME_BYTES = 64 };

enum declared_setting {
    SETTING_UNKNOWN,
    SETTING_FOLLOWED,
    SETTING_OF_THE_START, /* fixed at the process's start: only the variable sets it */
};

/* Classifies a key. Unless it is unknown, `variable` receives the name of the equivalent
 * environment variable; of two such variables, the name of the variable for profiles alone
 * (OTEL_EXPORTER_OTLP_PROFILES_X). */
enum declared_setting declared_setting_find(const char *key, char variable[SETTING_NAME_BYTES]);

/* Makes the key of a variable. Returns false if the variable has no key, because the model has
 * another place for the setting. */
bool declared_setting_key(const char *variable, char key[SETTING_NAME_BYTES]);

#endif
