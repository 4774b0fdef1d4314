/* Loads COUNT libraries, works in each, and unloads them: the first half one after the other, each
 * of which takes its predecessor's place; the second half when all have worked. Then, where COME is
 * not 0, it loads so many of the first again, which get the places of the others, and stay. In the
 * end, and with WAIT_FIRST in the environment also in the beginning, it waits until a profiler has
 * its own libraries.
 *
 * usage: unloads_many FOLDER COUNT MILLISECONDS BLOCKS COME   the libraries: FOLDER/000.so and on
 * Prints how many got a place where one of another name had been: of the COUNT, and of the COME. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MANY = 1000, MOST_POLLS = 1200, LEAST_BYTES = 256 << 10 };

struct place {
    uintptr_t start;
    int number;
};

static struct place places[MANY];
static int place_count;
static void *kept[MANY];

static void *load(const char *folder, int number) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%03d.so", folder, number);
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fputs(dlerror(), stderr);
        exit(2);
    }
    return library;
}

static uintptr_t place_of(void *library) {
    struct link_map *map;
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    return map->l_addr;
}

/* Notes the library's place; returns whether another was there before, or in a part of it. */
static int take_place(void *library, int number) {
    const uintptr_t start = place_of(library);
    int taken = 0;
    for (int i = 0; i < place_count; i++)
        taken |= places[i].number != number && places[i].start < start + LEAST_BYTES &&
                 start < places[i].start + LEAST_BYTES;
    if (place_count < MANY)
        places[place_count++] = (struct place){start, number};
    return taken;
}

static void *work_in(void *library, const char *milliseconds, const char *blocks) {
    void *(*work)(int, int);
    void *const symbol = dlsym(library, "one_of_many");
    memcpy(&work, &symbol, sizeof work);
    return work(atoi(milliseconds), atoi(blocks));
}

static int find_exporter(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    return strstr(info->dlpi_name, "libotelprof-flush.so") != NULL;
}

static void wait_for_exporter(void) {
    for (int i = 0; i < MOST_POLLS && !dl_iterate_phdr(find_exporter, NULL); i++)
        nanosleep(&(struct timespec){0, 50000000}, NULL);
}

int main(int argc, char **argv) {
    static void *libraries[MANY];
    const int count = argc == 6 ? atoi(argv[2]) : 0;
    const int come = argc == 6 ? atoi(argv[5]) : 0;
    int again = 0;
    int last = 0;
    if (count < 2 || count > MANY / 2 || come > count)
        return 2;
    if (getenv("WAIT_FIRST"))
        wait_for_exporter();
    for (int i = 0; i < count / 2; i++) {
        void *const library = load(argv[1], i);
        again += take_place(library, i);
        kept[i] = work_in(library, argv[3], argv[4]);
        dlclose(library);
    }
    for (int i = count / 2; i < count; i++) {
        libraries[i] = load(argv[1], i);
        again += take_place(libraries[i], i);
        kept[i] = work_in(libraries[i], argv[3], argv[4]);
    }
    for (int i = count / 2; i < count; i++)
        dlclose(libraries[i]);
    for (int i = 0; i < come; i++)
        last += take_place(load(argv[1], i), i);
    printf("%d %d\n", again, last);
    fflush(stdout);
    wait_for_exporter();
    return 0;
}
