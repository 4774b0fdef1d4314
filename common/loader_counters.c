#include "loader_counters.h"

#include <link.h>

static int loader_counters_of_first(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    *(struct loader_counters *)arg = (struct loader_counters){info->dlpi_adds, info->dlpi_subs};
    return 1;
}

struct loader_counters loader_counters_read(void) {
    struct loader_counters now = {0, 0};
    dl_iterate_phdr(loader_counters_of_first, &now);
    return now;
}
