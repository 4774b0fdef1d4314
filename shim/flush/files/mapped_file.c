#include "mapped_file.h"

#include "by_path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096 };

/* Identifies a file as a line of maps does. */
struct identity {
    unsigned major;
    unsigned minor;
    uint64_t inode; /* 0: no file */
};

static bool same_identity(const struct identity *a, const struct identity *b) {
    return a->inode && a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

static void mapped_file_scan_line(const char *line, const uint64_t addresses[2],
                                  struct identity found[2]) {
    uint64_t start;
    uint64_t end;
    struct identity here;
    /* NOLINTNEXTLINE(bugprone-unchecked-string-to-number-conversion,cert-err34-c): the kernel's */
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%x %" SCNu64, &start, &end, &here.major,
               &here.minor, &here.inode) != 5)
        return;
    for (int i = 0; i < 2; i++)
        if (addresses[i] >= start && addresses[i] < end)
            found[i] = here;
}

static bool same_mapping(const uint64_t addresses[2]) {
    struct identity found[2] = {{0}, {0}};
    char *line = NULL;
    size_t size = 0;
    FILE *const maps = may_open_by_path() ? fopen("/proc/thread-self/maps", "re") : NULL;
    if (!maps)
        return false;
    while (getline(&line, &size, maps) > 0)
        mapped_file_scan_line(line, addresses, found);
    free(line);
    fclose(maps);
    return same_identity(&found[0], &found[1]);
}

bool mapped_file_is_at(int file, uint64_t address) {
    void *const page = mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE, file, 0);
    if (page == MAP_FAILED)
        return false;
    const bool same = same_mapping((const uint64_t[]){address, (uintptr_t)page});
    munmap(page, PAGE_BYTES);
    return same;
}
