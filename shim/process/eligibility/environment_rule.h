/* Decides which environment variables count, and joins them with the configuration files.
 *
 * Under LD_PRELOAD all variables count, because the user that set LD_PRELOAD has set the variables,
 * too. Otherwise (preload_source.h) the variables may come from a user other than the process's,
 * because the children of a setuid program inherit them. So only root's files control how the
 * process may affect others:
 * - files to write, sockets to listen at and files of settings are named by root's files only;
 * - host-wide, in a process of root's or with capabilities, the variables turn the profiler off,
 *   describe the process and tune the sampling. The files decide if it is profiled, and where the
 *   profiles go (endpoint, headers, certificates, proxies, exporters, timeouts).
 * The environment precedes the files, and config_parse() takes the first setting of a name. An
 * empty variable counts as unset, so that the files' setting is taken.
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
    /* the variables turn the profiler off, describe the process and tune the sampling */
    ENVIRONMENT_DESCRIBES,
};

/* Names the sources of the settings. */
struct settings_sources {
    const char *const
        *entries;        /* for config_parse(); the environment's own array, or a joined array */
    bool files_left_out; /* the environment named a file, or a socket, that only files may name */
    bool writes_file;    /* an export file may be written: LD_PRELOAD or a file has selected it */
    struct sentence left_out; /* names of other variables that do not count; "": none */
};

/* Returns the rule. `files`: NULL, or the settings of the configuration files. Makes at most one
 * system call, for the process's rights; none if neither the files nor the environment select this
 * process. Context: calm, at start. */
enum environment_rule environment_rule_of(enum preload_source source,
                                          const char *const *environment,
                                          const struct config_lines *files);

/* Joins the environment and the files. The result is valid until the next call. Context: calm, at
 * start. */
void environment_join(const char *const *environment, enum environment_rule rule,
                      const struct config_lines *files, struct settings_sources *sources);

#endif
