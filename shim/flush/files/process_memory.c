#include "process_memory.h"

#include "by_path.h"
#include "process_file.h"
#include "text_numbers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Is not /proc/self: that is the main thread's folder, and after the main thread's end its statm
 * has zeros, and its cgroup the hierarchy's root (cgroup v1). */
static const char folder[] = "/proc/thread-self";

bool process_memory_parse(const char *statm, struct process_memory *memory) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long space;
    unsigned long long resident;
    unsigned long long data;
    if (sscanf(statm, "%llu %llu %*u %*u %*u %llu", &space, &resident, &data) != 3)
        return false;
    *memory = (struct process_memory){space * page, data * page, resident * page};
    return true;
}

static uint64_t soft_limit(const char *limits, const char *key) {
    const char *const value = process_text_value(limits, key, ' ');
    uint64_t limit;
    return value && number_read(value + strspn(value, " "), 10, &limit) ? limit : UINT64_MAX;
}

struct process_limits process_limits_parse(const char *limits) {
    return (struct process_limits){.space = soft_limit(limits, "Max address space"),
                                   .data = soft_limit(limits, "Max data size")};
}

static bool read_own(const char *name, char text[static KERNEL_TEXT_BYTES]) {
    return may_open_by_path() && kernel_text(folder, name, text);
}

bool process_memory_read(struct process_memory *memory) {
    char statm[KERNEL_TEXT_BYTES];
    return read_own("statm", statm) && process_memory_parse(statm, memory);
}

bool process_limits_read(struct process_limits *limits) {
    char text[KERNEL_TEXT_BYTES];
    if (!read_own("limits", text))
        return false;
    *limits = process_limits_parse(text);
    return true;
}

bool process_groups_read(char groups[static KERNEL_TEXT_BYTES]) {
    return read_own("cgroup", groups);
}
