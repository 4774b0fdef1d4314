/* The control groups of the process: each from its own up to the highest that can be seen, as a
 * folder of files (kernel_text.h). Linux, Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/.
 * A line of the process's groups that has not its form is as if it was not there. Context: flush.
 */
#ifndef OTELPROF_CONTROL_GROUPS_H
#define OTELPROF_CONTROL_GROUPS_H

/* A hierarchy: "" is version 2, other names are controllers of version 1, as /proc/PID/cgroup has
 * them. `folder` is where its files lie below the mount of all: "", "/memory". */
struct group_hierarchy {
    const char *controller;
    const char *folder;
};

/* The folder of one group, valid during the visit. */
typedef void group_visit(void *arg, const char *folder);

/* Visits the group that `groups`, the text of /proc/PID/cgroup, names in that hierarchy, and those
 * above it, where all are mounted at `mount`. */
void control_groups_visit(const char *mount, const char *groups, struct group_hierarchy hierarchy,
                          group_visit *visit, void *arg);

#endif
