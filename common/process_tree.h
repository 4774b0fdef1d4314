/* Decides which process of a tree reports a condition that concerns all of it.
 *
 * A wrong setting is wrong in every process that inherits it. The process at the top reports it:
 * the first that was given this preload and these variables, OTEL_* and LD_PRELOAD as exec gave
 * them (given_variables.h). A process that has an ancestor with the same variables is silent, if
 * that ancestor could report it: a static program, or one with more rights than its caller, has not
 * loaded the profiler. The destination of profiles is mostly inherited, too. A process is silent
 * about profiles that do not arrive if an ancestor has reported that. Variables are not compared
 * for this: the helper thread lacks the capabilities to read those of root's processes, but every
 * process can read the names of threads. Called only when there is something to report. Context:
 * calm | flush.
 */
#ifndef OTELPROF_PROCESS_TREE_H
#define OTELPROF_PROCESS_TREE_H

#include <stdbool.h>

enum process_tree_reporter {
    REPORTER_LOADED,   /* loads the profiler: excluded programs read their settings, too */
    REPORTER_PROFILED, /* is profiled: it has a helper thread */
    /* has logged that its profiles do not arrive, whatever its variables: its helper thread has
     * another name then (helper_name.h) */
    REPORTER_UNSENT,
    REPORTER_RELATIVE, /* is profiled, whatever its variables */
};

/* Returns whether an ancestor is such a reporter; false also if /proc does not show it. */
bool process_tree_has_reported(enum process_tree_reporter reporter);

/* Returns whether an ancestor or a living child is profiled; false also if /proc does not show it
 * (children: Linux 4.2, CONFIG_PROC_CHILDREN). */
bool process_tree_has_relative(void);

#endif
