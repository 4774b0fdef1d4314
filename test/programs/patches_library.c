/* Works as a debugger or a patching agent: writes a byte into a page of code that the profiler's
 * exporter has loaded. Then it makes three exports, each of which returns that code to the kernel,
 * and prints whether the byte is still in the page. */
#include "../../shim/otelprof.h"
#include "flush_timeout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    UNUSED_BYTE = 15 /* an unused byte of e_ident */,
    MARK = 0x5a,
    PAGE = 4096,
    EXPORTS = 3,
};

static unsigned char *first_page_of(const char *library) {
    char line[4096];
    unsigned long start = 0;
    unsigned long found = 0;
    FILE *const maps = fopen("/proc/self/maps", "r");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        unsigned long offset;
        if (strstr(line, library) && sscanf(line, "%lx-%*x %*s %lx", &start, &offset) == 2 &&
            offset == 0)
            found = start;
    }
    if (maps)
        fclose(maps);
    return (unsigned char *)found;
}

int main(void) {
    unsigned char *page = NULL;
    for (int i = 0; !page && i < 3000; i++) {
        page = first_page_of("libzstd.so");
        usleep(10000);
    }
    if (!page || mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0)
        return 1;
    page[UNUSED_BYTE] = MARK;
    mprotect(page, PAGE, PROT_READ);
    for (int i = 0; i < EXPORTS; i++) {
        void *volatile sampled = malloc(1000);
        free(sampled);
        if (!otelprof_flush(FLUSH_TIMEOUT_MS))
            return 2;
    }
    puts(page[UNUSED_BYTE] == MARK ? "kept" : "lost");
    return 0;
}
