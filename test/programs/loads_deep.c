/* Loads a library with RTLD_DEEPBIND and calls functions of it by name. Prints their results, and
 * how the library is mapped.
 *
 * usage: loads_deep now|lazy|dlmopen PATH FUNCTION... */
#define _GNU_SOURCE
#include "cpu_sample.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SAMPLED_BURNER(main_burns, 40)

static int find_exporter(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    return strstr(info->dlpi_name, "libotelprof-flush.so") != NULL;
}

/* While another thread is in the loader, the profiler puts off redirecting a library's calls. Waits
 * until the helper has been there; a dlopen() waits for the loader, and has the profiler do what it
 * has put off. */
static void wait_for_loader(void) {
    while (getenv("LD_PRELOAD") && !dl_iterate_phdr(find_exporter, NULL))
        usleep(10000);
    (void)dlopen(NULL, RTLD_NOW);
}

static void *load(const char *how, const char *path) {
    if (strcmp(how, "dlmopen") == 0)
        return dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    return dlopen(path, RTLD_DEEPBIND | (strcmp(how, "lazy") == 0 ? RTLD_LAZY : RTLD_NOW));
}

static void print_mappings(const char *path) {
    char line[1024];
    char rights[5];
    FILE *const maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, path) && sscanf(line, "%*s %4s", rights) == 1)
            puts(rights);
    if (maps)
        fclose(maps);
}

int main(int argc, char **argv) {
    wait_for_loader();
    void *const library = argc > 2 ? load(argv[1], argv[2]) : NULL;
    if (!library)
        return 1;
    wait_for_loader();
    for (int i = 3; i < argc; i++) {
        int (*function)(void);
        void *const found = dlsym(library, argv[i]);
        memcpy(&function, &found, sizeof function);
        printf("%s %d\n", argv[i], function() & 1);
    }
    print_mappings(argv[2]);
    main_burns();
    return 0;
}
