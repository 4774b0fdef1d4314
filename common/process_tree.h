/* Decides which process of a tree reports a condition that concerns the whole tree.
 *
 * A wrong setting is wrong in every process that inherits it, but only the topmost process with
 * this preload and these variables reports it. So a process is silent if an ancestor has the same
 * variables (OTEL_* and LD_PRELOAD as exec gave them, given_variables.h) and could report them; a
 * static program, or one with more rights than its caller, could not, because it has not loaded the
 * profiler. The destination of profiles is mostly inherited, too, so a process is silent about
 * profiles that do not arrive if an ancestor has reported that. The names of threads show this, and
 * every process can read them; the helper thread lacks the capabilities to read the variables of
 * root's processes. The caller asks only when there is something to report. Context: calm | flush.
 */
#ifndef OTELPROF_PROCESS_TREE_H
#define OTELPROF_PROCESS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum process_tree_reporter {
    /* loads the profiler; excluded programs, which read their settings, are included */
    REPORTER_LOADED,
    REPORTER_PROFILED, /* is profiled, that is, has a helper thread */
    /* has logged that its profiles do not arrive, and shows that by its helper thread's name
     * (helper_name.h); its variables may differ */
    REPORTER_UNSENT,
    REPORTER_RELATIVE, /* is profiled; its variables may differ */
};

/* Returns whether an ancestor, one of the nearest 32, is such a reporter; false, too, if /proc does
 * not show that. For REPORTER_LOADED and REPORTER_PROFILED every process up to that ancestor must
 * have the same variables. */
bool process_tree_has_reported(enum process_tree_reporter reporter);

/* Returns the nearest profiled ancestor, and stores the id of its helper thread; 0: there is
 * none. */
pid_t process_tree_nearest_profiled(uint32_t *tid);

/* Returns whether an ancestor or a living child is profiled; false also if /proc does not show it
 * (children: Linux 4.2, CONFIG_PROC_CHILDREN). */
bool process_tree_has_relative(void);

#endif
