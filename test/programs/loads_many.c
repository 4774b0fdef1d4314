/* Loads FOLDER/0.so, 1.so and so on, COUNT copies of one library, and has each allocate. When all
 * of the files are mapped by the profiler, which reads their symbols, or after a minute, it frees
 * and unloads all. Says how many were mapped by it then, and how many are in the end: as soon as it
 * is no more than MOST, or after a minute.
 *
 * usage: loads_many FOLDER COUNT MOST */
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MANY = 1000, PATIENCE = 1200, TURNS = 20000 };

static void rest(void) {
    nanosleep(&(struct timespec){0, 50000000}, NULL);
}

static void *call_back(uint64_t seed) {
    return malloc(100 + seed % 10);
}

/* What it allocated is left in `*object`. */
static void *load(const char *path, void **object) {
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *(*work)(void *(*)(uint64_t), uint64_t, int);
    void *const symbol = library ? dlsym(library, "plugin_work") : NULL;
    if (!symbol) {
        puts("not loaded");
        exit(1);
    }
    memcpy(&work, &symbol, sizeof work);
    *object = work(call_back, 1, TURNS);
    return library;
}

/* The loader maps a file's beginning for reading alone; who reads symbols, as a whole. */
static int read_by_others(const char *folder) {
    char line[PATH_MAX + 128];
    int count = 0;
    FILE *const maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        count += strstr(line, folder) && strstr(line, " rw-p 00000000 ");
    if (maps)
        fclose(maps);
    return count;
}

static int wait_for(const char *folder, int least, int most) {
    int count = read_by_others(folder);
    for (int i = 0; i < PATIENCE && (count < least || count > most); i++) {
        rest();
        count = read_by_others(folder);
    }
    return count;
}

int main(int argc, char **argv) {
    static void *libraries[MANY];
    static void *objects[MANY];
    char path[PATH_MAX];
    const int count = argc == 4 ? atoi(argv[2]) : 0;
    if (count < 1 || count > MANY)
        return 2;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%d.so", argv[1], i);
        libraries[i] = load(path, &objects[i]);
    }
    printf("%d ", wait_for(argv[1], count, count));
    for (int i = 0; i < count; i++) {
        free(objects[i]); /* what lives would be named by them still */
        dlclose(libraries[i]);
    }
    printf("%d\n", wait_for(argv[1], 0, atoi(argv[3])));
    return 0;
}
