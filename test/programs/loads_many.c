/* Loads FOLDER/0.so, 1.so and so on, COUNT copies of one library, and has each allocate. When the
 * profiler, which reads their symbols, has opened all of the files, or after a minute, it frees and
 * unloads all. Prints how many the profiler opened, and how many are still open in the end: as soon
 * as none is, or after a minute.
 *
 * usage: loads_many FOLDER COUNT */
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 1000, MOST_POLLS = 1200, TURNS = 20000 };

static void rest(void) {
    nanosleep(&(struct timespec){0, 50000000}, NULL);
}

static void *call_back(uint64_t seed) {
    return malloc(100 + seed % 10);
}

/* Loads a library, has it allocate `*object`, and returns its handle. */
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

/* Watches each file by inotify: the loader opens and closes it once, a reader of symbols once
 * more. */
static int watch;
static int opened[MANY];
static int closed[MANY];

static void look(void) {
    _Alignas(struct inotify_event) char events[1 << 14];
    ssize_t size;
    while ((size = read(watch, events, sizeof events)) > 0) {
        for (char *at = events; at < events + size;) {
            const struct inotify_event *const event = (const void *)at;
            const int number = event->len ? atoi(event->name) : MANY;
            if (number < MANY && (event->mask & IN_OPEN))
                opened[number]++;
            if (number < MANY && (event->mask & IN_CLOSE))
                closed[number]++;
            at += sizeof *event + event->len;
        }
    }
}

static int read_by_others(void) {
    int count = 0;
    look();
    for (int i = 0; i < MANY; i++)
        count += opened[i] > 1;
    return count;
}

static int still_open(void) {
    int count = 0;
    look();
    for (int i = 0; i < MANY; i++)
        count += opened[i] > closed[i];
    return count;
}

static int wait_for(int (*counted)(void), int wanted) {
    int count = counted();
    for (int i = 0; i < MOST_POLLS && count != wanted; i++) {
        rest();
        count = counted();
    }
    return count;
}

int main(int argc, char **argv) {
    static void *libraries[MANY];
    static void *objects[MANY];
    char path[PATH_MAX];
    const int count = argc == 3 ? atoi(argv[2]) : 0;
    if (count < 1 || count > MANY)
        return 2;
    watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (inotify_add_watch(watch, argv[1], IN_OPEN | IN_CLOSE) < 0)
        return 3;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%d.so", argv[1], i);
        libraries[i] = load(path, &objects[i]);
        look();
    }
    printf("%d ", wait_for(read_by_others, count));
    for (int i = 0; i < count; i++) {
        free(objects[i]); /* live objects would still show the library's names */
        dlclose(libraries[i]);
    }
    printf("%d\n", wait_for(still_open, 0));
    return 0;
}
