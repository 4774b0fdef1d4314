/* Loads FOLDER/0.so, 1.so and so on, COUNT copies of one library, has each allocate, and goes on
 * for a second; then unloads them. Says how many of them are still mapped, by whomever: as soon as
 * it is no more than MOST, or after 20 seconds.
 *
 * usage: loads_many FOLDER COUNT MOST */
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MANY = 1000, PATIENCE = 400, A_SECOND = 20 };

static void rest(void) {
    nanosleep(&(struct timespec){0, 50000000}, NULL);
}

static void *call_back(uint64_t seed) {
    return malloc(100 + seed % 10);
}

static void *load(const char *path) {
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *(*work)(void *(*)(uint64_t), uint64_t);
    void *const symbol = library ? dlsym(library, "plugin_work") : NULL;
    if (!symbol) {
        puts("not loaded");
        exit(1);
    }
    memcpy(&work, &symbol, sizeof work);
    (void)work(call_back, 1);
    return library;
}

static int mapped(const char *folder) {
    char line[PATH_MAX + 128];
    char last[PATH_MAX + 128] = "";
    int count = 0;
    FILE *const maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        const char *const path = strstr(line, folder);
        count += path && strcmp(path, last) != 0;
        if (path)
            strcpy(last, path);
    }
    fclose(maps);
    return count;
}

int main(int argc, char **argv) {
    static void *libraries[MANY];
    char path[PATH_MAX];
    const int count = argc == 4 ? atoi(argv[2]) : 0;
    if (count < 1 || count > MANY)
        return 2;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%d.so", argv[1], i);
        libraries[i] = load(path);
    }
    for (int i = 0; i < A_SECOND; i++)
        rest();
    for (int i = 0; i < count; i++)
        dlclose(libraries[i]);
    for (int i = 0; i < PATIENCE && mapped(argv[1]) > atoi(argv[3]); i++)
        rest();
    printf("%d\n", mapped(argv[1]));
    return 0;
}
