/* Which process of a tree reports what concerns all of it.
 *
 * A wrong setting is wrong in every process that inherits it. The process at the top reports it:
 * the first that was given this preload and these variables, OTEL_* and LD_PRELOAD as exec gave
 * them (given_variables.h). A process that has an ancestor with the same variables is silent, if
 * that ancestor can have reported: a static program, or one with more rights than its caller, has
 * not loaded us. Where profiles go is mostly inherited, too. A process is silent about profiles
 * that do not arrive if an ancestor has reported that. Variables are not compared for this: the
 * helper thread lacks the capabilities to read those of root's processes, but everybody can read
 * the names of threads. Asked only when there is something to report. Context: calm | flush.
 */
#ifndef OTELPROF_PROCESS_TREE_H
#define OTELPROF_PROCESS_TREE_H

#include <stdbool.h>

enum process_tree_reporter {
    REPORTER_LOADED,   /* whatever has us loaded: excluded programs read their settings, too */
    REPORTER_PROFILED, /* what is profiled: it has a thread of ours */
    /* what has said that its profiles do not arrive, whatever it was given: that thread has a name
     * of its own (helper_name.h) */
    REPORTER_UNSENT,
    REPORTER_KIN, /* what is profiled, whatever it was given */
};

/* Whether an ancestor is one. false also where /proc does not say. */
bool process_tree_has_reported(enum process_tree_reporter reporter);

/* Whether an ancestor is profiled, or a child that is alive. false also where /proc does not say
 * (children: Linux 4.2, CONFIG_PROC_CHILDREN). */
bool process_tree_has_kin(void);

#endif
