/* Allocates for as long as the test lets it, and keeps account of what it holds.
 *
 * usage: churn PLUGIN FOLDER   (copies of PLUGIN are made in FOLDER)
 *
 * Threads that live long allocate and free by many stacks, in all sizes, and pass objects to each
 * other; others come and go; libraries are loaded under ever new names, at changing addresses, and
 * unloaded; now and then a child is forked. All of it works in bursts with pauses in between. A
 * line on the standard input stops everything between two bursts: then one line is written,
 *     {"held": BYTES, "allocated": BYTES}
 * with the chunks of the program's own objects, and all that malloc has given out, to any caller
 * (exact without thread caches: GLIBC_TUNABLES=glibc.malloc.tcache_count=0). The next line lets it
 * go on. It ends with its input. */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOIPA __attribute__((noipa))
enum {
    ALLOCATORS = 4,
    SHARED = 256, /* objects that any thread may free */
    OWN = 128,
    BURST = 40,
    LIBRARIES = 6, /* loaded at a time */
    TURNS = 20000,
    MOST_SHORT_THREADS = 3,
};

static const char *plugin;
static const char *folder;
static pthread_rwlock_t at_work;
static atomic_bool ended;
static _Atomic int64_t held;
static _Atomic(void *) shared[SHARED];

static void check(bool holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "churn: %s\n", what);
    _exit(1);
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 16;
}

static void rest(uint64_t milliseconds) {
    nanosleep(
        &(struct timespec){(time_t)(milliseconds / 1000), (long)(milliseconds % 1000 * 1000000)},
        NULL);
}

/* --- objects --- */

/* Returns the size with malloc's own head and padding: it is before the object, with flags in the
 * lowest bits. */
static int64_t chunk_bytes(const void *object) {
    return (int64_t)(((const size_t *)object)[-1] & ~(size_t)7);
}

static void *keep(void *object) {
    check(object != NULL, "no memory");
    held += chunk_bytes(object);
    return object;
}

static void give_up(void *object) {
    if (!object)
        return;
    held -= chunk_bytes(object);
    free(object);
}

/* Returns 16 bytes to 64 KiB, every order of magnitude alike; rarely a megabyte. */
static size_t random_size(uint64_t *random) {
    if (next_random(random) % 4096 == 0)
        return 1 << 20;
    const size_t order = (size_t)16 << next_random(random) % 13;
    return order / 2 + next_random(random) % order;
}

/* --- many stacks --- */

typedef void *allocate_by(uint64_t path, unsigned depth, size_t size);
static allocate_by red, green, blue, grey;

static void *allocate_along(uint64_t path, unsigned depth, size_t size) {
    static allocate_by *const ways[] = {red, green, blue, grey};
    if (depth == 0)
        return path & 1 ? malloc(size) : path & 2 ? calloc(1, size) : realloc(NULL, size);
    return ways[path & 3](path >> 2, depth - 1, size);
}

#define WAY(name)                                                                                  \
    NOIPA static void *name(uint64_t path, unsigned depth, size_t size) {                          \
        void *volatile object = allocate_along(path, depth, size);                                 \
        return object;                                                                             \
    }
WAY(red)
WAY(green)
WAY(blue)
WAY(grey)

static void *allocate(uint64_t *random) {
    return keep(
        allocate_along(next_random(random), 4 + next_random(random) % 16, random_size(random)));
}

/* --- bursts --- */

static void begin_burst(void) {
    pthread_rwlock_rdlock(&at_work);
}

static void end_burst(void) {
    pthread_rwlock_unlock(&at_work);
}

static void *allocate_for_long(void *number) {
    uint64_t random = (uintptr_t)number + 1;
    void *own[OWN] = {NULL};
    while (!ended) {
        begin_burst();
        for (int i = 0; i < BURST; i++) {
            void **const place = &own[next_random(&random) % OWN];
            give_up(*place);
            *place = allocate(&random);
            if (next_random(&random) % 4 == 0)
                *place = atomic_exchange(&shared[next_random(&random) % SHARED], *place);
        }
        end_burst();
        rest(5 + next_random(&random) % 10);
    }
    for (int i = 0; i < OWN; i++)
        give_up(own[i]);
    return NULL;
}

/* Is a thread that lives for a moment; its objects outlive it. */
static void *live_for_a_moment(void *seed) {
    uint64_t random = (uintptr_t)seed;
    for (int i = 0; i < 20; i++)
        give_up(atomic_exchange(&shared[next_random(&random) % SHARED], allocate(&random)));
    if (random >> 40 & 1)
        pthread_exit(NULL);
    return NULL;
}

static void *make_threads(void *unused) {
    uint64_t random = 100;
    while (!ended) {
        pthread_t threads[MOST_SHORT_THREADS];
        begin_burst();
        const uint64_t count = 1 + next_random(&random) % MOST_SHORT_THREADS;
        for (uint64_t i = 0; i < count; i++)
            check(pthread_create(&threads[i], NULL, live_for_a_moment,
                                 (void *)(uintptr_t)next_random(&random)) == 0,
                  "no thread");
        for (uint64_t i = 0; i < count; i++)
            pthread_join(threads[i], NULL);
        end_burst();
        rest(50 + next_random(&random) % 50);
    }
    return unused;
}

/* --- libraries --- */

static void *call_back(uint64_t seed) {
    return allocate(&seed);
}

struct library {
    void *handle;
    char path[PATH_MAX];
};

/* Loads a copy under a name that never was and will never be again. */
static void load_copy(struct library *library, unsigned number) {
    snprintf(library->path, PATH_MAX, "%s/copy_%u.so", folder, number);
    const int from = open(plugin, O_RDONLY | O_CLOEXEC);
    const int to = open(library->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    check(from >= 0 && to >= 0 && sendfile(to, from, NULL, 10 << 20) > 0, "a copy of the plugin");
    close(from);
    close(to);
    library->handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
    check(library->handle != NULL, "dlopen");
}

static void unload(struct library *library) {
    if (!library->handle)
        return;
    check(dlclose(library->handle) == 0, "dlclose");
    unlink(library->path);
    library->handle = NULL;
}

static void use(void *library, uint64_t seed) {
    void *(*work)(void *(*)(uint64_t), uint64_t, int);
    void *const symbol = dlsym(library, "plugin_work");
    check(symbol != NULL, "dlsym");
    memcpy(&work, &symbol, sizeof work);
    for (int i = 0; i < 20; i++)
        give_up(work(call_back, seed + (uint64_t)i, TURNS));
}

static void *load_and_unload(void *unused) {
    static struct library libraries[LIBRARIES];
    uint64_t random = 200;
    for (unsigned number = 0; !ended; number++) {
        struct library *const library = &libraries[next_random(&random) % LIBRARIES];
        begin_burst();
        unload(library);
        load_copy(library, number);
        for (int i = 0; i < LIBRARIES; i++)
            if (libraries[i].handle)
                use(libraries[i].handle, next_random(&random));
        end_burst();
        rest(200 + next_random(&random) % 200);
    }
    for (int i = 0; i < LIBRARIES; i++)
        unload(&libraries[i]);
    return unused;
}

/* --- children --- */

static void *work_in_the_child(void *unused) {
    uint64_t random = 7;
    for (int i = 0; i < 2000; i++)
        give_up(allocate(&random));
    return unused;
}

static void live_in_the_child(uint64_t milliseconds, bool by_exit) {
    pthread_t thread;
    check(pthread_create(&thread, NULL, work_in_the_child, NULL) == 0, "no thread in the child");
    pthread_join(thread, NULL);
    rest(milliseconds);
    if (by_exit)
        exit(0);
    _exit(0);
}

static void *fork_now_and_then(void *unused) {
    uint64_t random = 300;
    while (!ended) {
        int status = -1;
        const uint64_t life = next_random(&random) % 3000;
        begin_burst();
        const pid_t child = fork();
        if (child == 0)
            live_in_the_child(life, random & (1 << 20));
        end_burst();
        check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child's status");
        for (int i = 0; i < 50 && !ended; i++)
            rest(100);
    }
    return unused;
}

/* --- the books --- */

static void tell(void) {
    const struct mallinfo2 info = mallinfo2();
    printf("{\"held\": %lld, \"allocated\": %zu}\n", (long long)held, info.uordblks + info.hblkhd);
    fflush(stdout);
}

static bool read_line(void) {
    char c = 0;
    while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n') {
    }
    return c == '\n';
}

static void answer(void) {
    while (read_line()) {
        pthread_rwlock_wrlock(&at_work);
        tell();
        const bool more = read_line();
        pthread_rwlock_unlock(&at_work);
        if (!more)
            return;
    }
}

int main(int argc, char **argv) {
    static char output[4096]; /* otherwise stdio would allocate */
    pthread_t threads[ALLOCATORS + 3];
    pthread_rwlockattr_t fair;
    check(argc == 3, "usage: churn PLUGIN FOLDER");
    plugin = argv[1];
    folder = argv[2];
    setvbuf(stdout, output, _IOFBF, sizeof output);
    pthread_rwlockattr_init(&fair);
    pthread_rwlockattr_setkind_np(&fair, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&at_work, &fair);
    for (uintptr_t i = 0; i < ALLOCATORS; i++)
        check(pthread_create(&threads[i], NULL, allocate_for_long, (void *)i) == 0, "no thread");
    pthread_create(&threads[ALLOCATORS], NULL, make_threads, NULL);
    pthread_create(&threads[ALLOCATORS + 1], NULL, load_and_unload, NULL);
    pthread_create(&threads[ALLOCATORS + 2], NULL, fork_now_and_then, NULL);
    answer();
    ended = true;
    for (int i = 0; i < ALLOCATORS + 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
