/* Loads a library with RTLD_DEEPBIND and calls functions of it by name. Prints what they answer,
 * and how the library is mapped.
 *
 * usage: loads_deep now|lazy|dlmopen PATH FUNCTION... */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

BURNER(main_burns, 300)

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
    void *const library = argc > 2 ? load(argv[1], argv[2]) : NULL;
    if (!library)
        return 1;
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
