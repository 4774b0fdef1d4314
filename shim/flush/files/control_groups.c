#include "control_groups.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Visits a group and then its ancestors, up to the mount; `group` begins with '/'. If the path
 * leaves the namespace's root, the group is not visible, and only the root is visited. If a group
 * does not exist below the mount, its folder is visited, too, but has no files. */
static void visit_upwards(const char *mount, struct group_hierarchy hierarchy, const char *group,
                          size_t length, group_visit *visit, void *arg) {
    char folder[PATH_MAX];
    const int base = snprintf(folder, sizeof folder, "%s%s", mount, hierarchy.folder);
    if (base < 0 || (size_t)base + length >= sizeof folder)
        return;
    if (length >= 3 && memcmp(group, "/..", 3) == 0)
        length = 0;
    memcpy(folder + base, group, length);
    folder[(size_t)base + length] = 0;
    for (char *end = folder + base + length;; end = strrchr(folder, '/')) {
        *end = 0;
        visit(arg, folder);
        if (end <= folder + base)
            return;
    }
}

/* Returns true if the list of controllers, which ends at a colon, has `controller`, alone or among
 * others. */
static bool has_controller(const char *list, const char *controller) {
    const size_t length = strlen(controller);
    for (;;) {
        const size_t size = strcspn(list, ",:\n");
        if (size == length && memcmp(list, controller, length) == 0)
            return true;
        if (list[size] != ',')
            return false;
        list += size + 1;
    }
}

/* Returns the path in a line ID:CONTROLLERS:PATH; NULL if the line is another controller's. */
static const char *group_in_line(const char *line, const char *controller) {
    const char *const list = line + strcspn(line, ":\n");
    if (*list != ':' || !has_controller(list + 1, controller))
        return NULL;
    const char *const group = list + 1 + strcspn(list + 1, ":\n");
    return group[0] == ':' && group[1] == '/' ? group + 1 : NULL;
}

void control_groups_visit(const char *mount, const char *groups, struct group_hierarchy hierarchy,
                          group_visit *visit, void *arg) {
    for (const char *line = groups; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *const group = group_in_line(line, hierarchy.controller);
        if (group)
            visit_upwards(mount, hierarchy, group, strcspn(group, "\n"), visit, arg);
    }
}
