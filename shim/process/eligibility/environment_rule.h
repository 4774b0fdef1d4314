/* Decides which environment variables count, and joins them with the configuration files.
 *
 * Under LD_PRELOAD the user that set it has set the variables, too: all of them count. Otherwise
 * (preload_source.h) they may come from another user than the process's, because the children of a
 * setuid program inherit them. So only root's files control all that the process may do to others:
 * - files to write, sockets to listen at and files of settings are named by root's files only;
 * - host-wide, in a process of root's or with capabilities, the variables turn the profiler off,
 *   describe the process and tune the sampling. The files decide if it is profiled, and where the
 *   profiles go (endpoint, headers, certificates, proxies, exporters, timeouts).
 * In the order of config_parse(), where the first appearance counts, the environment precedes the
 * files. An empty variable is as unset, so that the files count.
 */
#ifndef OTELPROF_ENVIRONMENT_RULE_H
#define OTELPROF_ENVIRONMENT_RULE_H

#include "config_file.h"
#include "preload_source.h"
#include "sentence.h"

#include <stdbool.h>

enum environment_rule {
    ENVIRONMENT_COUNTS,
    ENVIRONMENT_NAMES_NO_FILES,
    ENVIRONMENT_DESCRIBES, /* turns off, describes and tunes */
};

/* Sources of the settings. */
struct settings_sources {
    const char *const
        *entries;        /* for config_parse(); the environment's own array, or a joined one */
    bool files_left_out; /* the environment named a log file, an export file or OTEL_CONFIG_FILE */
    bool writes_file;    /* an export file may be written, as a configuration file permits */
    struct sentence left_out; /* names of other variables that do not count; "" = none */
};

/* Returns the rule. `files`: NULL, or the settings of the configuration files. Makes at most one
 * system call, for the process's rights, and none if neither they nor the environment select this
 * process. Context: calm, at start. */
enum environment_rule environment_rule_of(enum preload_source source,
                                          const char *const *environment,
                                          const struct config_lines *files);

/* Joins both. The result is valid until the next call. Context: calm, at start. */
void environment_join(const char *const *environment, enum environment_rule rule,
                      const struct config_lines *files, struct settings_sources *sources);

#endif
