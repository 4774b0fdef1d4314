/* What of the environment counts, and how it goes together with the configuration files.
 *
 * Under LD_PRELOAD the variables are those of whoever had us loaded: all of them count. Elsewhere
 * (preload_source.h) they may be another user's than the process: the children of a setuid program
 * have them. So what the process may do to others by them is left to root's files:
 * - files to write, sockets to answer at and files of settings are named by root's files alone;
 * - host-wide, in a process of root's or with capabilities, the variables turn the profiler off,
 *   describe the process and tune the sampling. Whether it is profiled, and where the profiles go
 *   (endpoint, headers, certificates, proxies, exporters, times to wait), is said by the files.
 * In the order of config_parse(), where the first appearance counts, the environment stands before
 * the files. A variable that is set to nothing is as unset, so that the files count.
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
    ENVIRONMENT_DESCRIBES, /* and turns off, and tunes */
};

/* What settings come of. */
struct settings_sources {
    const char *const
        *entries;        /* for config_parse(); the environment's own array, or one of ours */
    bool files_left_out; /* the environment named a log file, an export file or OTEL_CONFIG_FILE */
    bool writes_file;    /* an export file may be written: a configuration file asked for it */
    struct sentence left_out; /* names of other variables that do not count; "" = none */
};

/* `files`: NULL, or what the configuration files say. Where they and the environment do not ask for
 * this process to be profiled, no system call is made to find out whose it is; otherwise one may
 * be. Context: calm, at start. */
enum environment_rule environment_rule_of(enum preload_source source,
                                          const char *const *environment,
                                          const struct config_lines *files);

/* Puts both together. The result holds until the next call. Context: calm, at start. */
void environment_join(const char *const *environment, enum environment_rule rule,
                      const struct config_lines *files, struct settings_sources *sources);

#endif
