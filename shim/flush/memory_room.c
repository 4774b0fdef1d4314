#include "memory_room.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_BYTES = 8192 };

/* Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst */
struct version {
    const char *controller; /* as a line of /proc/PID/cgroup has it between two colons */
    const char *folder;     /* below the mount */
    const char *limit;
    const char *usage;
    const char *reclaimable[2]; /* lines of memory.stat */
};
static const struct version versions[] = {
    {"", "", "memory.max", "memory.current", {"inactive_file", "active_file"}},
    {"memory",
     "/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
};

static bool read_text(const char *folder, const char *name, char text[static TEXT_BYTES]) {
    char path[PATH_MAX];
    struct stat status;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return false;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return false;
    const ssize_t size =
        fstat(file, &status) == 0 && S_ISREG(status.st_mode) ? read(file, text, TEXT_BYTES - 1) : 0;
    close(file);
    text[size > 0 ? size : 0] = 0;
    return size > 0;
}

/* UINT64_MAX: there is none, or "max". */
static uint64_t number_in(const char *folder, const char *name) {
    char text[TEXT_BYTES];
    if (!read_text(folder, name, text) || text[0] < '0' || text[0] > '9')
        return UINT64_MAX;
    return strtoull(text, NULL, 10);
}

static uint64_t value_of(const char *text, const char *key) {
    const size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ')
            return strtoull(line + length + 1, NULL, 10);
    }
    return 0;
}

static uint64_t reclaimable_in(const struct version *version, const char *folder) {
    char text[TEXT_BYTES];
    if (!read_text(folder, "memory.stat", text))
        return 0;
    return value_of(text, version->reclaimable[0]) + value_of(text, version->reclaimable[1]);
}

static uint64_t room_of_group(const struct version *version, const char *folder) {
    const uint64_t limit = number_in(folder, version->limit);
    const uint64_t usage = number_in(folder, version->usage);
    if (limit == UINT64_MAX || usage == UINT64_MAX)
        return UINT64_MAX;
    const uint64_t reclaimable = reclaimable_in(version, folder);
    const uint64_t used = usage > reclaimable ? usage - reclaimable : 0;
    return limit > used ? limit - used : 0;
}

/* `group` begins with '/'. A path that leaves the namespace's root is not visible: then the root is
 * what there is. Where the group is not found under the mount, that shows the group itself. */
static uint64_t room_of_groups(const struct version *version, const char *mount, const char *group,
                               size_t length) {
    char folder[PATH_MAX];
    const int base = snprintf(folder, sizeof folder, "%s%s", mount, version->folder);
    if (base < 0 || (size_t)base + length >= sizeof folder)
        return UINT64_MAX;
    if (length >= 3 && memcmp(group, "/..", 3) == 0)
        length = 0;
    memcpy(folder + base, group, length);
    folder[(size_t)base + length] = 0;
    uint64_t least = UINT64_MAX;
    for (char *end = folder + base + length;; end = strrchr(folder, '/')) {
        *end = 0;
        const uint64_t room = room_of_group(version, folder);
        if (room < least)
            least = room;
        if (end <= folder + base)
            return least;
    }
}

/* A line is ID:CONTROLLERS:PATH. */
static bool is_line_of(const char *line, const struct version *version, const char **group) {
    const char *const controller = strchr(line, ':');
    const size_t length = strlen(version->controller);
    if (!controller || strncmp(controller + 1, version->controller, length) != 0 ||
        controller[1 + length] != ':')
        return false;
    *group = controller + length + 2;
    return **group == '/';
}

uint64_t memory_room_in(const char *mount, const char *groups) {
    uint64_t least = UINT64_MAX;
    for (const char *line = groups; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
            const char *group;
            if (!is_line_of(line, &versions[i], &group))
                continue;
            const uint64_t room = room_of_groups(&versions[i], mount, group, strcspn(group, "\n"));
            if (room < least)
                least = room;
        }
    }
    return least;
}

uint64_t memory_room(void) {
    char groups[TEXT_BYTES];
    return read_text("/proc/self", "cgroup", groups) ? memory_room_in("/sys/fs/cgroup", groups)
                                                     : UINT64_MAX;
}
