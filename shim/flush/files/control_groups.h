/* Visits the control groups of the process: its own group and each visible ancestor, as a folder of
 * files (kernel_text.h). Source: Linux, Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/.
 * Malformed lines in the list of groups are skipped. Context: flush.
 */
#ifndef OTELPROF_CONTROL_GROUPS_H
#define OTELPROF_CONTROL_GROUPS_H

/* Names a hierarchy: "" is version 2, other names are controllers of version 1, as in
 * /proc/PID/cgroup. `folder`: the folder of its files below the common mount: "", "/memory". */
struct group_hierarchy {
    const char *controller;
    const char *folder;
};

/* Receives the folder of one group, valid during the visit. */
typedef void group_visit(void *arg, const char *folder);

/* Visits the group that `groups`, the text of /proc/PID/cgroup, names in that hierarchy, and its
 * ancestors. All hierarchies are mounted at `mount`. */
void control_groups_visit(const char *mount, const char *groups, struct group_hierarchy hierarchy,
                          group_visit *visit, void *arg);

#endif
