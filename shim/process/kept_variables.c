#include "kept_variables.h"

#include "capture/kernel/own_memory.h"

#include <stddef.h>
#include <string.h>

static bool is_profiler_variable(const char *entry) {
    return strncmp(entry, "OTEL_", 5) == 0;
}

const char *const *kept_variables(const char *const *environment) {
    size_t count = 0;
    size_t size = 0;
    for (size_t i = 0; environment && environment[i]; i++) {
        count += is_profiler_variable(environment[i]);
        size += is_profiler_variable(environment[i]) ? strlen(environment[i]) + 1 : 0;
    }
    const size_t table = (count + 1) * sizeof(const char *);
    const char **const kept = own_memory_take(whole_pages(table + size));
    if (!kept)
        return NULL;
    char *at = (char *)kept + table;
    size_t index = 0;
    for (size_t i = 0; environment && environment[i]; i++) {
        if (!is_profiler_variable(environment[i]))
            continue;
        kept[index++] = at;
        at = stpcpy(at, environment[i]) + 1;
    }
    return kept;
}
