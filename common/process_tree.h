/* Who of a process tree has to say what concerns all of it.
 *
 * A wrong setting is wrong in every process that inherits it. What starts the tree says so: the
 * first process that was given this preload and these variables, OTEL_* and LD_PRELOAD as exec gave
 * them (given_variables.h). Who has an ancestor with the same leaves it to that ancestor, if it can
 * have spoken: a static program, or one of more rights than its caller's, has not loaded us.
 * Where profiles go is mostly inherited, too: whose ancestor has found that they do not arrive says
 * nothing of that. Variables are not compared then: the helper thread has not the capabilities to
 * read those of root's processes, but the names of threads are everybody's.
 * Asked only when there is something to be said. Context: calm | flush.
 */
#ifndef OTELPROF_PROCESS_TREE_H
#define OTELPROF_PROCESS_TREE_H

#include <stdbool.h>

enum process_tree_reporter {
    REPORTER_LOADED,   /* whatever has us loaded: excluded programs read their settings, too */
    REPORTER_PROFILED, /* what is profiled: it has a thread of ours */
    /* what has said that its profiles do not arrive, whatever it was given: that thread has a name
     * of its own */
    REPORTER_UNSENT,
};

/* The thread's names. */
#define PROCESS_TREE_THREAD "otelprof"
#define PROCESS_TREE_UNSENT "otelprof unsent"

/* Whether an ancestor is one. false also where /proc does not say. */
bool process_tree_has_reported(enum process_tree_reporter reporter);

#endif
