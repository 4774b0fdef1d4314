#include "load.h"

#include "clock.h"
#include "files/by_path.h"
#include "files/control_groups.h"
#include "files/kernel_text.h"
#include "files/process_memory.h"
#include "hash.h"
#include "text_numbers.h"

#include <stdio.h>
#include <string.h>

/* --- the machine --- */

/* Parses the numbers of proc(5): user nice system idle iowait irq softirq steal; user and nice
 * include guest time. */
bool load_parse_machine(const char *text, struct load *load) {
    enum { IDLE = 3, IOWAIT = 4, COLUMNS = 8 };
    load->busy = load->all = 0;
    if (strncmp(text, "cpu ", 4) != 0)
        return false;
    text += 4;
    for (int column = 0; column < COLUMNS; column++) {
        uint64_t ticks;
        text = number_read(text + strspn(text, " "), 10, &ticks);
        if (!text)
            return column > IDLE;
        load->all += ticks;
        load->busy += column == IDLE || column == IOWAIT ? 0 : ticks;
    }
    return true;
}

/* --- control groups --- */

static uint64_t load_hash_folder(const char *folder) {
    uint64_t hash = 0;
    for (; *folder; folder++)
        hash = hash_word(hash, (unsigned char)*folder);
    return hash;
}

static void add_group(struct load *load, const char *folder, double quota, double period,
                      uint64_t used_nano) {
    if (load->group_count == MOST_GROUPS || quota <= 0 || period <= 0)
        return;
    load->groups[load->group_count++] =
        (struct group_load){load_hash_folder(folder), used_nano, quota / period};
}

static void load_visit_group(void *arg, const char *folder) {
    char text[KERNEL_TEXT_BYTES];
    uint64_t quota;
    uint64_t period;
    if (!kernel_text(folder, "cpu.max", text))
        return;
    const char *const end = number_read(text, 10, &quota); /* NULL if the text is "max" */
    if (end && *end == ' ' && number_read(end + 1, 10, &period) &&
        kernel_text(folder, "cpu.stat", text))
        add_group(arg, folder, (double)quota, (double)period,
                  kernel_value(text, "usage_usec") * 1000);
}

struct first_version {
    struct load *load;
    const char *mount;
};

/* Visits a folder of cgroup v1, which has limits in one controller and CPU time in another; the two
 * may be mounted apart. */
static void visit_first_version(void *arg, const char *folder) {
    const struct first_version *const of = arg;
    char counted[4096];
    const char *const below = folder + strlen(of->mount) + strlen("/cpu");
    const uint64_t quota = kernel_number(folder, "cpu.cfs_quota_us"); /* "-1": no limit */
    const uint64_t period = kernel_number(folder, "cpu.cfs_period_us");
    if (quota == UINT64_MAX || period == UINT64_MAX ||
        snprintf(counted, sizeof counted, "%s/cpuacct%s", of->mount, below) >= (int)sizeof counted)
        return;
    const uint64_t used_nano = kernel_number(counted, "cpuacct.usage");
    if (used_nano != UINT64_MAX)
        add_group(of->load, folder, (double)quota, (double)period, used_nano);
}

void load_read_groups(const char *mount, const char *groups, struct load *load) {
    struct first_version first = {load, mount};
    load->group_count = 0;
    control_groups_visit(mount, groups, (struct group_hierarchy){"", ""}, load_visit_group, load);
    control_groups_visit(mount, groups, (struct group_hierarchy){"cpu", "/cpu"},
                         visit_first_version, &first);
}

/* --- the machine and the groups --- */

bool load_read(struct load *load) {
    char text[KERNEL_TEXT_BYTES];
    *load = (struct load){.nano = monotonic_nano()};
    if (!may_open_by_path() || !kernel_text("/proc", "stat", text) ||
        !load_parse_machine(text, load))
        return false;
    if (process_groups_read(text))
        load_read_groups(CONTROL_GROUPS_MOUNT, text, load);
    return true;
}

static const struct group_load *find_group(const struct load *load, uint64_t name) {
    for (size_t i = 0; i < load->group_count; i++)
        if (load->groups[i].name == name)
            return &load->groups[i];
    return NULL;
}

/* Returns the load of a group in percent of its limit; a negative number if the group was not known
 * before, or if its counter has been reset. */
static double percent_of_group(const struct load *before, const struct load *after,
                               const struct group_load *group) {
    const struct group_load *const was = find_group(before, group->name);
    if (!was || group->used_nano < was->used_nano)
        return -1;
    const double allowed = group->limit * (double)(after->nano - before->nano);
    return 100 * (double)(group->used_nano - was->used_nano) / allowed;
}

double load_percent(const struct load *before, const struct load *after) {
    double highest = -1;
    if (after->nano <= before->nano)
        return highest;
    if (after->all > before->all && after->busy >= before->busy)
        highest = 100 * (double)(after->busy - before->busy) / (double)(after->all - before->all);
    for (size_t i = 0; i < after->group_count; i++) {
        const double percent = percent_of_group(before, after, &after->groups[i]);
        if (percent > highest)
            highest = percent;
    }
    return highest;
}
