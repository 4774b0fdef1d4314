#include "group_memory.h"

#include "control_groups.h"
#include "kernel_text.h"
#include "text_numbers.h"

#include <stddef.h>
#include <string.h>

/* Names the files of one version of control groups: Linux, Documentation/admin-guide/cgroup-v2.rst
 * and cgroup-v1/memory.rst.
 */
struct memory_version {
    struct group_hierarchy hierarchy;
    const char *limit;
    const char *usage;
    const char *reclaimable[2]; /* lines of memory.stat */
    const char *high; /* name of the file with the threshold of throttling; NULL: there is none */
};
static const struct memory_version versions[] = {
    {{"", ""}, "memory.max", "memory.current", {"inactive_file", "active_file"}, "memory.high"},
    {{"memory", "/memory"},
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"},
     NULL},
};

struct search {
    const struct memory_version *version;
    group_memory_visit *visit;
    void *arg;
};

static void group_memory_visit_group(void *arg, const char *folder) {
    const struct search *const search = arg;
    const struct group_memory memory = {folder, search->version,
                                        kernel_number(folder, search->version->limit),
                                        kernel_number(folder, search->version->usage)};
    search->visit(search->arg, &memory);
}

void group_memory_each(const char *mount, const char *groups, group_memory_visit *visit,
                       void *arg) {
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct search search = {&versions[i], visit, arg};
        control_groups_visit(mount, groups, versions[i].hierarchy, group_memory_visit_group,
                             &search);
    }
}

uint64_t group_memory_high(const struct group_memory *memory) {
    return memory->version->high ? kernel_number(memory->folder, memory->version->high)
                                 : UINT64_MAX;
}

uint64_t group_memory_used(const struct group_memory *memory) {
    char text[KERNEL_TEXT_BYTES];
    uint64_t reclaimable = 0;
    if (kernel_text(memory->folder, "memory.stat", text))
        for (size_t i = 0; i < 2; i++)
            reclaimable += kernel_value(text, memory->version->reclaimable[i]);
    return memory->usage > reclaimable ? memory->usage - reclaimable : 0;
}

uint64_t group_memory_hits(const struct group_memory *memory) {
    char text[KERNEL_TEXT_BYTES];
    if (kernel_text(memory->folder, "memory.events", text))
        return kernel_value(text, "high") + kernel_value(text, "max");
    const uint64_t failures = kernel_number(memory->folder, "memory.failcnt");
    return failures == UINT64_MAX ? 0 : failures;
}

/* Parses the line "some avg10=0.00 avg60=0.00 avg300=0.00 total=0". */
uint64_t group_memory_stalled(const struct group_memory *memory) {
    char text[KERNEL_TEXT_BYTES];
    if (!kernel_text(memory->folder, "memory.pressure", text) || strncmp(text, "some ", 5) != 0)
        return 0;
    const char *const total = strstr(text, "total=");
    uint64_t micros = 0;
    if (total)
        (void)number_read(total + strlen("total="), 10, &micros);
    return micros;
}
