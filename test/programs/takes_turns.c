/* Waits for the profiler's own libraries, loads a library, works in it, unloads it, and loads
 * another, which the kernel puts to the same place: names of the first one's addresses that come
 * from the second are wrong.
 *
 * usage: takes_turns hooked|unseen never|after|between
 *
 * unseen: the library is unloaded by a dlclose that no preload sees, as libc's own is. The program
 * waits for exports: after the second library's first work, or between the two, too. Prints "same
 * place" or "apart". The loader puts both where they are linked to, which it does for programs that
 * are not position independent. */
/* flags: -no-pie */
#define _GNU_SOURCE
#include "awaits_export.h"
#include "cpu_sample.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LIBRARY_BYTES = 5 * 4096 };

static int (*close_library)(void *) = dlclose;

static int find_exporter(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    return strstr(info->dlpi_name, "libotelprof-flush.so") != NULL;
}

/* Waits for an export, and keeps the place free from other mappings meanwhile. */
static void wait_in_place(uintptr_t place) {
    void *const held = mmap((void *)place, LIBRARY_BYTES, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    await_export();
    if (held != MAP_FAILED)
        munmap(held, LIBRARY_BYTES);
}

static void *load(const char *name) {
    char path[PATH_MAX + 32];
    const ssize_t size = readlink("/proc/self/exe", path, PATH_MAX);
    path[size > 0 ? size : 0] = 0;
    strcpy(strrchr(path, '/') + 1, name);
    void *const library = dlopen(path, RTLD_NOW);
    if (!library)
        exit(2);
    return library;
}

/* Has the library work. Two samples charge to this function the time that the thread used before,
 * and the cost of the blocks, each of which is sampled: the library's function takes its own sample
 * before it allocates them. */
static void *work_in(void *library, const char *name, int milliseconds, int blocks) {
    void *(*work)(int, int);
    void *const symbol = dlsym(library, name);
    memcpy(&work, &symbol, sizeof work);
    TAKE_CPU_SAMPLE();
    void *const list = work(milliseconds, blocks);
    TAKE_CPU_SAMPLE();
    return list;
}

static uintptr_t place_of(void *library) {
    struct link_map *map;
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    return map->l_addr;
}

int main(int argc, char **argv) {
    void *volatile kept[3];
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "unseen") == 0) {
        void *const symbol = dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), "dlclose");
        memcpy(&close_library, &symbol, sizeof symbol);
    }
    const int between = strcmp(argv[2], "between") == 0;
    while (!dl_iterate_phdr(find_exporter, NULL))
        usleep(10000);
    cpu_samples_hold();
    void *const a = load("turn_a.so");
    const uintptr_t place = place_of(a);
    kept[0] = work_in(a, "work_of_a", 30, 2000);
    close_library(a);
    if (between)
        wait_in_place(place);
    void *const b = load("turn_b.so");
    puts(place_of(b) == place ? "same place" : "apart");
    fflush(stdout);
    kept[1] = work_in(b, "work_of_b", 30, 3000);
    if (between || strcmp(argv[2], "after") == 0)
        await_export();
    kept[2] = work_in(b, "work_of_b", 30, 0);
    return kept[0] == kept[1];
}
