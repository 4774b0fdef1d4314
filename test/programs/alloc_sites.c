/* Allocates through every function of the malloc family, from sites of its own, 16 B to 64 MiB, and
 * prints the true sums of each site (sites.h).
 *
 * usage: alloc_sites BYTES_PER_SITE SECONDS   (sleeps SECONDS at the end, its objects still live)
 */
#include "sites.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { HELD = 64 };

typedef void *allocate(void);
struct plain {
    struct site site;
    allocate *make;
};

static void *volatile kept; /* live objects, linked through their first word */

static void *posix(size_t alignment, size_t size) {
    void *p = NULL;
    return posix_memalign(&p, alignment, size) == 0 ? p : NULL;
}

#define SITE(name, size, call)                                                                     \
    NOIPA static void *name(void) {                                                                \
        void *p = call;                                                                            \
        KEEP(p);                                                                                   \
        return p;                                                                                  \
    }
#define SITES(X)                                                                                   \
    X(site_malloc_16, 16, malloc(16), 0, 0)                                                        \
    X(site_malloc_64, 64, malloc(64), 2, 0)                                                        \
    X(site_malloc_1000, 1000, malloc(1000), 0, 0)                                                  \
    X(site_malloc_8k, 8192, malloc(8192), 2, 0)                                                    \
    X(site_malloc_300k, 300000, malloc(300000), 3, 0)                                              \
    X(site_malloc_1m, 1 << 20, malloc(1 << 20), 4, 0)                                              \
    X(site_malloc_64m, 64 << 20, malloc(64 << 20), 2, 4)                                           \
    X(site_calloc, 24 * 5, calloc(24, 5), 0, 0)                                                    \
    X(site_calloc_64m, 64 << 20, calloc(1 << 10, 64 << 10), 3, 3)                                  \
    X(site_realloc_null, 96, realloc(NULL, 96), 0, 0)                                              \
    X(site_reallocarray, 40 * 6, reallocarray(NULL, 40, 6), 3, 0)                                  \
    X(site_memalign, 200, memalign(64, 200), 0, 0)                                                 \
    X(site_aligned_alloc, 512, aligned_alloc(256, 512), 0, 0)                                      \
    X(site_posix_memalign, 700, posix(128, 700), 3, 0)                                             \
    X(site_valloc, 5000, valloc(5000), 0, 0)                                                       \
    X(site_pvalloc, 6000, pvalloc(6000), 0, 0)
#define DEFINE(name, size, call, keep, limit) SITE(name, size, call)
SITES(DEFINE)
#define LIST(name, size, call, keep, limit) {{#name, size, 0, 0, keep, limit}, name},
static struct plain plain[] = {SITES(LIST)};

static void keep(void *p) {
    *(void **)p = kept;
    kept = p;
}

static uint64_t count_for(uint64_t bytes, size_t size, uint64_t limit) {
    const uint64_t count = bytes / size < 4 ? 4 : bytes / size;
    return limit && count > limit ? limit : count;
}

static void run_plain(struct plain *p, uint64_t bytes) {
    void *held[HELD] = {NULL};
    const size_t window = p->site.size > 1 << 16 ? 2 : HELD;
    const uint64_t count = count_for(bytes, p->site.size, p->site.limit);
    for (uint64_t i = 0; i < count; i++) {
        void *const object = p->make();
        if (!object)
            abort();
        p->site.objects++;
        free(held[i % window]);
        held[i % window] = NULL;
        if (p->site.keep_every && i % p->site.keep_every == 0) {
            keep(object);
            p->site.live++;
        } else {
            held[i % window] = object;
        }
    }
    for (size_t i = 0; i < window; i++)
        free(held[i]);
}

/* --- realloc: a success counts as a free and an allocation of the new size --- */

struct resize {
    struct site before;
    struct site after;
    void *(*make)(size_t size);
    void *(*change)(void *p, size_t size);
};

#define RESIZE(name, from, to, live, limit)                                                        \
    NOIPA static void *site_##name##_before(size_t size) {                                         \
        void *p = malloc(size);                                                                    \
        KEEP(p);                                                                                   \
        return p;                                                                                  \
    }                                                                                              \
    NOIPA static void *site_##name##_after(void *old, size_t size) {                               \
        void *p = realloc(old, size);                                                              \
        KEEP(p);                                                                                   \
        return p;                                                                                  \
    }
#define RESIZES(X)                                                                                 \
    X(grow, 48, 4096, 0, 0)                                                                        \
    X(shrink, 8192, 128, 2, 0)                                                                     \
    X(move, 30000, 90000, 0, 0)                                                                    \
    X(remap, 1 << 20, 64 << 20, 2, 4)
RESIZES(RESIZE)
#define LIST_RESIZE(name, from, to, live, limit)                                                   \
    {{"site_" #name "_before", from, 0, 0, 0, 0},                                                  \
     {"site_" #name "_after", to, 0, 0, live, limit},                                              \
     site_##name##_before,                                                                         \
     site_##name##_after},
static struct resize resizes[] = {RESIZES(LIST_RESIZE)};

static void run_resize(struct resize *r, uint64_t bytes) {
    const size_t smaller = r->before.size < r->after.size ? r->before.size : r->after.size;
    const size_t unit = r->after.limit ? r->after.size : smaller;
    const uint64_t count = count_for(bytes, unit, r->after.limit);
    for (uint64_t i = 0; i < count; i++) {
        void *const object = r->make(r->before.size);
        void *const wall = malloc(1); /* is behind the object, so that growing must move it */
        void *const changed = r->change(object, r->after.size);
        if (!changed)
            abort();
        free(wall);
        r->before.objects++;
        r->after.objects++;
        if (r->after.keep_every && i % r->after.keep_every == 0) {
            keep(changed);
            r->after.live++;
        } else {
            free(changed);
        }
    }
}

/* A realloc that fails leaves the object as it was; realloc(p, 0) frees. */
static struct site failed = {"site_survives_failed_realloc", 2048, 0, 0, 0, 0};
static struct site zeroed = {"site_freed_by_realloc_zero", 80, 0, 0, 0, 0};
static struct site nothing = {"site_failed_realloc", 0, 0, 0, 0, 0};

NOIPA static void *site_survives_failed_realloc(void) {
    void *p = malloc(failed.size);
    KEEP(p);
    return p;
}

NOIPA static void *site_freed_by_realloc_zero(void) {
    void *p = malloc(zeroed.size);
    KEEP(p);
    return p;
}

NOIPA static void *site_failed_realloc(void *old, size_t size) {
    void *p = realloc(old, size);
    KEEP(p);
    return p;
}

static void run_odd_reallocs(uint64_t bytes) {
    static volatile size_t too_much = (size_t)1 << 63;
    static volatile size_t zero = 0;
    for (uint64_t i = 0; i < count_for(bytes / 2, failed.size, 0); i++) {
        void *const object = site_survives_failed_realloc();
        errno = 0;
        if (site_failed_realloc(object, too_much) || errno != ENOMEM)
            abort();
        keep(object);
        failed.objects++;
        failed.live++;
    }
    for (uint64_t i = 0; i < count_for(bytes, zeroed.size, 0); i++) {
        if (realloc(site_freed_by_realloc_zero(), zero))
            abort();
        zeroed.objects++;
    }
}

/* --- frees on another thread, and objects that outlive their thread --- */

static struct site crossed = {"site_freed_elsewhere", 400, 0, 0, 0, 0};
static struct site orphaned = {"site_outlives_thread", 1500, 0, 0, 0, 0};
static void *handed[HELD];
static sem_t full;
static sem_t empty;
static bool last;

NOIPA static void *site_freed_elsewhere(void) {
    void *p = malloc(crossed.size);
    KEEP(p);
    return p;
}

NOIPA static void *site_outlives_thread(void) {
    void *p = malloc(orphaned.size);
    KEEP(p);
    return p;
}

static void *free_for_others(void *unused) {
    (void)unused;
    for (bool done = false; !done;) {
        sem_wait(&full);
        for (int i = 0; i < HELD; i++)
            free(handed[i]);
        done = last;
        sem_post(&empty);
    }
    return NULL;
}

static void *allocate_and_end(void *arg) {
    const uint64_t count = *(uint64_t *)arg;
    for (uint64_t i = 0; i < count; i++) {
        keep(site_outlives_thread());
        orphaned.objects++;
        orphaned.live++;
    }
    return NULL;
}

static void run_threads(uint64_t bytes) {
    pthread_t other;
    uint64_t batches = bytes / crossed.size / HELD + 1;
    sem_init(&full, 0, 0);
    sem_init(&empty, 0, 1);
    pthread_create(&other, NULL, free_for_others, NULL);
    while (batches--) {
        sem_wait(&empty);
        for (int i = 0; i < HELD; i++)
            handed[i] = site_freed_elsewhere();
        crossed.objects += HELD;
        last = batches == 0;
        sem_post(&full);
    }
    pthread_join(other, NULL);

    uint64_t count = count_for(bytes / 2, orphaned.size, 0);
    pthread_create(&other, NULL, allocate_and_end, &count);
    pthread_join(other, NULL);
}

static void print_truth(void) {
    enum { PLAIN = sizeof plain / sizeof *plain, RESIZED = sizeof resizes / sizeof *resizes };
    const struct site *all[PLAIN + 2 * RESIZED + 5];
    size_t count = 0;
    for (int i = 0; i < PLAIN; i++)
        all[count++] = &plain[i].site;
    for (int i = 0; i < RESIZED; i++) {
        all[count++] = &resizes[i].before;
        all[count++] = &resizes[i].after;
    }
    all[count++] = &failed;
    all[count++] = &zeroed;
    all[count++] = &nothing;
    all[count++] = &crossed;
    all[count++] = &orphaned;
    sites_print(all, count);
}

int main(int argc, char **argv) {
    const uint64_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        run_plain(&plain[i], bytes);
    for (size_t i = 0; i < sizeof resizes / sizeof *resizes; i++)
        run_resize(&resizes[i], bytes);
    run_odd_reallocs(bytes);
    run_threads(bytes);
    print_truth();
    fflush(stdout);
    if (argc > 2)
        sleep((unsigned)atoi(argv[2]));
    return 0;
}
