#include "environment_rule.h"

#include "bare_syscall.h"
#include "config_names.h"
#include "config_values.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

enum {
    FROM_ENVIRONMENT_MOST = 256, /* entries of the environment that are kept at most */
    FROM_FILES_MOST = 256,
};

static const char exporters[] = "OTEL_PROFILES_EXPORTER";
static const char export_file[] = "OTEL_PROFILER_FILE";
static const char log_file[] = "OTEL_PROFILER_LOG_FILE";
static const char config_file[] = "OTEL_CONFIG_FILE";
static const char control_file[] = "OTEL_PROFILER_CONTROL_FILE";
static const char include[] = "OTEL_PROFILER_INCLUDE";
static const char listen[] = "OTEL_PROFILER_LISTEN"; /* creates a socket and serves requests */

/* --- entries, "NAME=value" --- */

static bool is_of(const char *entry, const char *name) {
    const size_t size = strlen(name);
    return strncmp(entry, name, size) == 0 && entry[size] == '=';
}

static const char *value_of(const char *entry) {
    const char *const equals = strchr(entry, '=');
    return equals ? equals + 1 : "";
}

/* --- choosing the rule --- */

static bool has_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (bare_syscall(SYS_capget, (long)&header, (long)data, 0, 0, 0, 0) != 0)
        return true; /* the capabilities are not known, so the process may have some */
    return data[0].permitted || data[1].permitted;
}

static bool files_name(const struct config_lines *files, const char *name) {
    for (size_t i = 0; files && i < files->count; i++)
        if (is_of(files->entries[i], name) && *value_of(files->entries[i]))
            return true;
    return false;
}

enum environment_rule environment_rule_of(enum preload_source source,
                                          const char *const *environment,
                                          const struct config_lines *files) {
    if (source == PRELOAD_VARIABLE)
        return ENVIRONMENT_COUNTS;
    if (source == PRELOAD_LINKED)
        return ENVIRONMENT_NAMES_NO_FILES;
    /* these are the ids at exec; if they were root's, another constructor may have given up root
     * since */
    if (getauxval(AT_UID) == 0 || getauxval(AT_EUID) == 0)
        return ENVIRONMENT_DESCRIBES;
    if (!config_names_value(environment, include) && !files_name(files, include))
        return ENVIRONMENT_DESCRIBES;
    return has_capabilities() ? ENVIRONMENT_DESCRIBES : ENVIRONMENT_NAMES_NO_FILES;
}

/* --- entries that are left out --- */

static bool describes(const char *entry) {
    static const char names[] = "OTEL_SERVICE_NAME\0"
                                "OTEL_RESOURCE_ATTRIBUTES\0"
                                "OTEL_PROFILER_RESOURCE\0"
                                "OTEL_LOG_LEVEL\0"
                                "OTEL_PROFILER_TYPES\0"
                                "OTEL_PROFILER_CPU_FREQUENCY\0"
                                "OTEL_PROFILER_ALLOC_INTERVAL\0"
                                "OTEL_PROFILER_HEAP_MAX_LIVE\0"
                                "OTEL_PROFILER_HEAP_AGE\0"
                                "OTEL_PROFILER_MAX_STACK_DEPTH\0"
                                "OTEL_PROFILER_SYMBOLS\0"
                                "OTEL_PROFILER_REDACT\0";
    for (const char *name = names; name < names + sizeof names - 1; name += strlen(name) + 1)
        if (is_of(entry, name))
            return true;
    return false;
}

static bool names_file(const char *entry) {
    if (is_of(entry, log_file) || is_of(entry, config_file) || is_of(entry, control_file) ||
        is_of(entry, listen))
        return true;
    return is_of(entry, export_file) && strcmp(value_of(entry), "-") != 0 &&
           strcmp(value_of(entry), "stdout") != 0;
}

static bool environment_entry_counts(const char *entry, enum environment_rule rule,
                                     struct settings_sources *sources) {
    if (rule == ENVIRONMENT_COUNTS)
        return true;
    if (names_file(entry)) {
        sources->files_left_out = true;
        return false;
    }
    if (rule == ENVIRONMENT_NAMES_NO_FILES || describes(entry))
        return true;
    if (is_of(entry, "OTEL_SDK_DISABLED") && text_equals_ignoring_case(value_of(entry), "true"))
        return true;
    if (config_names_have(entry, strcspn(entry, "="))) {
        sentence_add(&sources->left_out, sources->left_out.length ? ", " : "");
        sentence_add_value(&sources->left_out, entry, strcspn(entry, "="));
    }
    return false;
}

/* --- joining --- */

/* Holds the entries that environment_join() has chosen. They are valid for the life of the
 * process. */
static const char *joined[FROM_ENVIRONMENT_MOST + FROM_FILES_MOST + 1];

void environment_join(const char *const *environment, enum environment_rule rule,
                      const struct config_lines *files, struct settings_sources *sources) {
    const size_t from_files = files ? files->count : 0;
    size_t count = 0;
    *sources = (struct settings_sources){.entries = environment};
    if (rule == ENVIRONMENT_COUNTS)
        sources->writes_file = true;
    if (rule == ENVIRONMENT_COUNTS && from_files == 0)
        return;
    for (size_t i = 0; environment && environment[i] && count < FROM_ENVIRONMENT_MOST; i++)
        if (strncmp(environment[i], "OTEL_", 5) == 0 && *value_of(environment[i]) &&
            environment_entry_counts(environment[i], rule, sources))
            joined[count++] = environment[i];
    joined[count] = NULL;
    if (files_name(files, export_file) || !config_names_value(joined, exporters))
        sources->writes_file = true;
    for (size_t i = 0; i < from_files && i < FROM_FILES_MOST; i++)
        joined[count++] = files->entries[i];
    joined[count] = NULL;
    sources->entries = joined;
}
