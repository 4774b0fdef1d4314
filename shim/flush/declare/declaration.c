#include "declaration.h"

#include "clock.h"
#include "complaints.h"
#include "declared_file.h"
#include "declared_values.h"
#include "process_tree.h"

#include <stdlib.h>
#include <string.h>

enum {
    FILE_MOST = 1 << 20,
    /* Bounds the file if CPU time has no limit, because the work grows with the square of the
     * number of anchors. */
    UNTIMED_FILE_MOST = 64 << 10,
};
static const struct work_budget budget = {500 * NANO_PER_MILLI, 32 << 20};

struct reading {
    const struct capture_api *api;
    struct declaration *declaration;
    struct declared_file file;
    struct declared_values values;
    enum log_level level; /* level of the warnings; LOG_NONE: not determined yet */
};

/* --- the file --- */

/* Returns the value of a variable in the environment of the process's start, which the helper
 * thread sees (hooks/environment.c). */
static const char *environment_look_up(const char *name) {
    return getenv(name);
}

static void declaration_read_values(void *arg) {
    struct reading *const reading = arg;
    declared_values_read(reading->file.text, reading->file.size, environment_look_up,
                         &reading->values);
}

static void declaration_refuse(struct declaration *declaration, const char *what, size_t line) {
    declaration->refused = what;
    declaration->refused_line = line;
}

/* Reads the values. If the guard ends the reader, the partial values are discarded, because they
 * may be inconsistent. */
static void declaration_read_file(struct reading *reading) {
    const struct capture_api *const api = reading->api;
    struct declaration *const declaration = reading->declaration;
    const size_t most = api->guard.is_timed() ? FILE_MOST : UNTIMED_FILE_MOST;
    const char *const problem = declared_file_read(api->config->config_file, most, &reading->file);
    if (problem) {
        declaration_refuse(declaration, problem, 0);
        return;
    }
    if (!api->guard.run(declaration_read_values, reading, &budget)) {
        memset(&reading->values, 0, sizeof reading->values);
        declaration_refuse(declaration, "takes too long to read, or too much memory", 0);
        return;
    }
    declaration_refuse(declaration, reading->values.refusal.what, reading->values.refusal.line);
}

/* --- logging --- */

/* Returns the level of a message that only one process of a tree logs, because the others read the
 * same file. */
static enum log_level level_in_tree(const struct capture_api *api, enum log_level level) {
    if (process_tree_has_reported(REPORTER_PROFILED))
        return LOG_DEBUG;
    return log_level_in_tree(api->log, LOG_DECLARED, level);
}

static void report_refusal(const struct reading *reading) {
    const struct capture_api *const api = reading->api;
    const struct declaration *const declaration = reading->declaration;
    const enum log_level level = level_in_tree(api, LOG_ERROR);
    const char *const path = api->config->config_file;
    if (declaration->refused_line)
        log_write(api->log, level, "OTEL_CONFIG_FILE: %s:%zu: %s; nothing is profiled", path,
                  declaration->refused_line, declaration->refused);
    else
        log_write(api->log, level, "OTEL_CONFIG_FILE: %s %s; nothing is profiled", path,
                  declaration->refused);
}

static void complain_of_key(struct reading *reading, const char *key, const char *what) {
    complain(&reading->values.complaints, 0, "distribution.otelprof.", key, what);
}

/* Returns true if a message of config_parse() is about `entry`. Such a message begins with the
 * variable's name; for errors inside a list of pairs, the name lacks PROFILES_. */
static bool is_about(const char *message, const char *entry) {
    static const char profiles[] = "PROFILES_";
    const size_t length = strcspn(entry, "=");
    const char *const found = strstr(entry, profiles);
    const size_t front = found ? (size_t)(found - entry) : length;
    const size_t back = found ? front + sizeof profiles - 1 : length;
    if (strncmp(message, entry, length) == 0)
        return strchr("= ", message[length]) != NULL;
    return back < length && strncmp(message, entry, front) == 0 &&
           strncmp(message + front, entry + back, length - back) == 0 &&
           strchr("= ", message[front + length - back]) != NULL;
}

/* Logs an error of the file's settings; errors of the environment were logged at the start. */
static void report_wrong_setting(void *arg, const char *message) {
    struct reading *const reading = arg;
    for (size_t i = 0; i < reading->values.count; i++) {
        const struct declared_setting_value *const setting = &reading->values.settings[i];
        if (!is_about(message, setting->text))
            continue;
        if (reading->level == LOG_NONE)
            reading->level = level_in_tree(reading->api, LOG_WARN);
        log_write(reading->api->log, reading->level, "OTEL_CONFIG_FILE: %s:%zu: %s",
                  reading->api->config->config_file, setting->line, message);
        return;
    }
}

/* --- the settings --- */

/* Puts the file's settings first, because config_parse() uses the first entry of a name. Returns
 * NULL without memory. */
static const char **merge_environment(const struct reading *reading) {
    const char *const *const variables = reading->api->variables;
    const size_t first = reading->values.count;
    size_t count = 0;
    while (variables && variables[count])
        count++;
    const char **const all = malloc((first + count + 1) * sizeof *all);
    if (!all)
        return NULL;
    for (size_t i = 0; i < first; i++)
        all[i] = reading->values.settings[i].text;
    for (size_t i = 0; i < count; i++)
        all[first + i] = variables[i];
    all[first + count] = NULL;
    return all;
}

/* Removes settings that were not prepared at the start, because the profiler cannot turn them on
 * later (settings.h). */
static void keep_within_start(struct reading *reading) {
    const struct config *const start = reading->api->config;
    struct config *const config = &reading->declaration->config;
    if (config->types & ~start->types)
        complain_of_key(reading, "types",
                        "has what OTEL_PROFILER_TYPES did not have at the start; without it");
    config->types &= start->types;
    if (!(config->types & (PROFILE_ALLOC | PROFILE_HEAP)))
        config->types &= ~(unsigned)PROFILE_MMAP;
    if (!(config->types & PROFILE_HEAP))
        config->types &= ~(unsigned)PROFILE_HEAP_PEAK;
    if (config->max_stack_depth > start->max_stack_depth) {
        complain_of_key(reading, "max_stack_depth",
                        "is more than OTEL_PROFILER_MAX_STACK_DEPTH; using that");
        config->max_stack_depth = start->max_stack_depth;
    }
    if (config->exporters & ~start->exporters & EXPORTER_OTLP_FILE) {
        complain_of_key(reading, "exporter",
                        "has otlp_file, which OTEL_PROFILES_EXPORTER did not have at the "
                        "start; without it");
        config->exporters &= ~(unsigned)EXPORTER_OTLP_FILE;
    }
}

static void ignore_wrong_setting(void *unused, const char *message) {
    (void)unused;
    (void)message;
}

/* Merges the file's settings with the environment's. Parses twice: the first pass gets the log
 * level, at which the second pass logs errors. Returns false without memory. */
static bool merge_settings(struct reading *reading) {
    struct declaration *const declaration = reading->declaration;
    struct config *const config = &declaration->config;
    const char **const environment = merge_environment(reading);
    if (!environment)
        return false;
    config_parse(environment, config, declaration->text, sizeof declaration->text,
                 ignore_wrong_setting, NULL);
    if (config->log_level_set)
        reading->api->lifecycle.set_log_level(config->log_level);
    config_parse(environment, config, declaration->text, sizeof declaration->text,
                 report_wrong_setting, reading);
    free(environment);
    keep_within_start(reading);
    return true;
}

/* --- the interface --- */

static bool read_declaration(struct reading *reading) {
    struct declaration *const declaration = reading->declaration;
    struct declared_values *const values = &reading->values;
    declaration_read_file(reading);
    declaration->attributes = values->attributes;
    declaration->disabled = values->disabled;
    if (declaration->refused) {
        report_refusal(reading);
        return true;
    }
    if (!merge_settings(reading))
        return false;
    if (values->complaints.count && reading->level == LOG_NONE)
        reading->level = level_in_tree(reading->api, LOG_WARN);
    complaints_log(&values->complaints, reading->api->config->config_file, reading->api->log,
                   reading->level);
    return true;
}

struct declaration *declaration_open(const struct capture_api *api) {
    struct reading *const reading = calloc(1, sizeof *reading);
    struct declaration *declaration = calloc(1, sizeof *declaration);
    bool read = false;
    if (reading && declaration) {
        reading->api = api;
        reading->declaration = declaration;
        read = read_declaration(reading);
        declared_values_free(&reading->values);
        free(reading->file.text);
    }
    free(reading);
    if (!read) {
        declaration_close(declaration);
        declaration = NULL;
    }
    return declaration;
}

void declaration_close(struct declaration *declaration) {
    if (declaration)
        attributes_clear(&declaration->attributes);
    free(declaration);
}
