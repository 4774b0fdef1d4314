/* Memory of our own, as the kernel sees it. */
#include "unit.h"

#include "kernel/own_memory.h"

/* The flags that /proc/self/smaps tells of the mapping that begins at `memory`. */
static void read_flags(const void *memory, char *flags, int size) {
    char line[256];
    bool here = false;
    FILE *const maps = fopen("/proc/self/smaps", "r");
    assert_non_null(maps);
    flags[0] = 0;
    while (fgets(line, sizeof line, maps)) {
        uintptr_t start;
        uintptr_t end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            here = (uintptr_t)memory >= start && (uintptr_t)memory < end;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            snprintf(flags, (size_t)size, "%s", line);
    }
    fclose(maps);
}

/* A table of 8 MiB of which a few bytes are used is to cost a few pages, not four huge ones. */
static void it_is_in_small_pages(void **state) {
    (void)state;
    const size_t size = 8 << 20;
    char flags[256];
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0)
        skip();
    void *const memory = own_memory_map(size);
    assert_non_null(memory);
    read_flags(memory, flags, sizeof flags);
    assert_non_null(strstr(flags, " nh"));
    own_memory_unmap(memory, size);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_in_small_pages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
