/* Loads a library with RTLD_DEEPBIND while another thread is in the loader, from the library's
 * constructor until after dlopen(): in a callback of dl_iterate_phdr(). Then has the library create
 * a thread, which works.
 *
 * usage: deep_beside_loader PATH, with deep_creates(function) in the library, whose constructor
 * calls the function at the address in ENTER_LOADER
 *
 * The other thread leaves the loader when the main thread sleeps, or the library's thread runs. */
#define _GNU_SOURCE
#include "cpu_sample.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic bool wanted, is_inside, runs;

SAMPLED_BURNER(deep_burns, 30)

static void *in_thread(void *unused) {
    atomic_store(&runs, true);
    deep_burns();
    return unused;
}

static bool main_sleeps(void) {
    char path[64];
    char text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    text[size > 0 ? size : 0] = 0;
    const char *const name_end = strrchr(text, ')');
    return name_end && strncmp(name_end, ") S", 3) == 0;
}

static int stay(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)info, (void)size, (void)unused;
    atomic_store(&is_inside, true);
    while (!atomic_load(&runs) && !main_sleeps())
        ;
    return 1;
}

static void *visits(void *unused) {
    while (!atomic_load(&wanted))
        ;
    (void)dl_iterate_phdr(stay, NULL);
    return unused;
}

static void enter_loader(void) {
    atomic_store(&wanted, true);
    while (!atomic_load(&is_inside))
        ;
}

static int find_exporter(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    return strstr(info->dlpi_name, "libotelprof-flush.so") != NULL;
}

int main(int argc, char **argv) {
    char address[32];
    void (*creates)(void *(*)(void *));
    pthread_t thread;
    while (getenv("LD_PRELOAD") && !dl_iterate_phdr(find_exporter, NULL))
        usleep(10000);
    (void)dlopen(NULL, RTLD_NOW); /* waits until the helper has left the loader */
    snprintf(address, sizeof address, "%p", (void *)(uintptr_t)enter_loader);
    setenv("ENTER_LOADER", address, 1);
    if (pthread_create(&thread, NULL, visits, NULL) != 0)
        return 1;
    void *const library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    void *const found = library ? dlsym(library, "deep_creates") : NULL;
    memcpy(&creates, &found, sizeof creates);
    if (!creates)
        return 2;
    creates(in_thread);
    pthread_join(thread, NULL);
    return 0;
}
