#include "declared_settings.h"

#include <stdio.h>
#include <string.h>

#define GENERIC_PREFIX  "OTEL_EXPORTER_OTLP_"
#define PROFILES_PREFIX "OTEL_EXPORTER_OTLP_PROFILES_"

static const char *const options[] = {
#define OPTION(field, kind, name, standard, help) name,
#include "options.def"
#undef OPTION
};
enum { OPTION_COUNT = sizeof options / sizeof *options };

static const char *const followed[] = {
#define DECLARED(name) name,
#include "declared_settings.def"
#undef DECLARED
};
enum { FOLLOWED_COUNT = sizeof followed / sizeof *followed };

static bool begins_with(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

bool declared_setting_key(const char *variable, char key[SETTING_NAME_BYTES]) {
    static const char *const prefixes[] = {"OTEL_PROFILER_", "OTEL_PROFILES_", "OTEL_PROFILE_",
                                           GENERIC_PREFIX};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (!begins_with(variable, prefixes[i]))
            continue;
        const char *const rest = variable + strlen(prefixes[i]);
        size_t length = 0;
        for (; length < SETTING_NAME_BYTES - 1 && rest[length]; length++)
            key[length] = (char)(rest[length] >= 'A' && rest[length] <= 'Z' ? rest[length] | 0x20
                                                                            : rest[length]);
        key[length] = 0;
        return true;
    }
    return false;
}

static bool is_followed(const char *variable) {
    for (size_t i = 0; i < FOLLOWED_COUNT; i++)
        if (strcmp(followed[i], variable) == 0)
            return true;
    return false;
}

enum declared_setting declared_setting_find(const char *key, char variable[SETTING_NAME_BYTES]) {
    char own[SETTING_NAME_BYTES];
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const char *const name = options[i];
        if (!declared_setting_key(name, own) || strcmp(own, key) != 0)
            continue;
        const bool two_forms = begins_with(name, GENERIC_PREFIX);
        snprintf(variable, SETTING_NAME_BYTES, "%s%s", two_forms ? PROFILES_PREFIX : "",
                 two_forms ? name + sizeof GENERIC_PREFIX - 1 : name);
        return is_followed(name) ? SETTING_FOLLOWED : SETTING_OF_THE_START;
    }
    return SETTING_UNKNOWN;
}
