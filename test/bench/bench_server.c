/* Behaves like a busy server: threads that work on requests, each a walk down one of three deep
 * call trees with an allocation and some computing at its end, beside a cache that keeps the latest
 * results. Each thread has paths of its own through the trees, and takes them in turn.
 *
 * usage: bench_server THREADS PATHS   (paths of each thread; runs until it is killed)
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOIPA __attribute__((noipa))

enum {
    LEVELS = 32,
    WIDTH = 4,
    SHORTEST = 12,
    CACHED = 256,
    MAX_THREADS = 64,
    LARGEST_BYTES = 16384,
    SPIN = 4000,
    END = 255,
};

/* Holds where a path turns at each level: the callee in the low bits, above them the call site. */
struct path {
    uint8_t tree;
    uint8_t turns[LEVELS + 1];
};

struct request {
    const uint8_t *at;
    uint64_t sum;
    void *result;
};

typedef void step(struct request *request);

NOIPA static void respond(struct request *r) {
    const size_t size = 16 + r->sum % LARGEST_BYTES;
    uint64_t x = r->sum;
    r->result = malloc(size);
    for (int i = 0; i < SPIN; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    if (r->result)
        memcpy(r->result, &x, sizeof x);
    r->sum = x;
}

/* Has two call sites, so that stacks differ within a function as well. */
#define STEP(tree, level, next, letter)                                                            \
    NOIPA static void tree##_##level##_##letter(struct request *r) {                               \
        const uint8_t turn = *r->at++;                                                             \
        if (turn == END) {                                                                         \
            respond(r);                                                                            \
            r->sum++;                                                                              \
        } else if (turn & WIDTH) {                                                                 \
            tree##_##next##_steps[turn % WIDTH](r);                                                \
            r->sum ^= turn;                                                                        \
        } else {                                                                                   \
            tree##_##next##_steps[turn % WIDTH](r);                                                \
            r->sum += turn;                                                                        \
        }                                                                                          \
    }
#define LEVEL(tree, level, next)                                                                   \
    STEP(tree, level, next, parse)                                                                 \
    STEP(tree, level, next, lookup)                                                                \
    STEP(tree, level, next, convert)                                                               \
    STEP(tree, level, next, write)                                                                 \
    static step *const tree##_##level##_steps[WIDTH] = {                                           \
        tree##_##level##_parse, tree##_##level##_lookup, tree##_##level##_convert,                 \
        tree##_##level##_write};
/* Defines a tree from the bottom, which no path passes, to the top. */
#define TREE(tree)                                                                                 \
    static step *const tree##_32_steps[WIDTH] = {respond, respond, respond, respond};              \
    LEVEL(tree, 31, 32)                                                                            \
    LEVEL(tree, 30, 31)                                                                            \
    LEVEL(tree, 29, 30)                                                                            \
    LEVEL(tree, 28, 29)                                                                            \
    LEVEL(tree, 27, 28)                                                                            \
    LEVEL(tree, 26, 27)                                                                            \
    LEVEL(tree, 25, 26)                                                                            \
    LEVEL(tree, 24, 25)                                                                            \
    LEVEL(tree, 23, 24)                                                                            \
    LEVEL(tree, 22, 23)                                                                            \
    LEVEL(tree, 21, 22)                                                                            \
    LEVEL(tree, 20, 21)                                                                            \
    LEVEL(tree, 19, 20)                                                                            \
    LEVEL(tree, 18, 19)                                                                            \
    LEVEL(tree, 17, 18)                                                                            \
    LEVEL(tree, 16, 17)                                                                            \
    LEVEL(tree, 15, 16)                                                                            \
    LEVEL(tree, 14, 15)                                                                            \
    LEVEL(tree, 13, 14)                                                                            \
    LEVEL(tree, 12, 13)                                                                            \
    LEVEL(tree, 11, 12)                                                                            \
    LEVEL(tree, 10, 11)                                                                            \
    LEVEL(tree, 9, 10)                                                                             \
    LEVEL(tree, 8, 9)                                                                              \
    LEVEL(tree, 7, 8)                                                                              \
    LEVEL(tree, 6, 7)                                                                              \
    LEVEL(tree, 5, 6)                                                                              \
    LEVEL(tree, 4, 5)                                                                              \
    LEVEL(tree, 3, 4)                                                                              \
    LEVEL(tree, 2, 3)                                                                              \
    LEVEL(tree, 1, 2)                                                                              \
    LEVEL(tree, 0, 1)

TREE(catalog)
TREE(checkout)
TREE(search)

static step *const *const trees[] = {catalog_0_steps, checkout_0_steps, search_0_steps};
static int path_count;

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Makes a path; most levels lead all requests of a tree the same way. */
static struct path new_path(uint64_t *random) {
    struct path path = {.tree = (uint8_t)(next_random(random) % 3)};
    const int depth = SHORTEST + (int)(next_random(random) % (LEVELS - SHORTEST));
    for (int i = 0; i < depth; i++) {
        const int usual = (path.tree + i) % (2 * WIDTH);
        const int other = (int)(next_random(random) % (2 * WIDTH));
        path.turns[i] = (uint8_t)(next_random(random) % 100 < 35 ? other : usual);
    }
    path.turns[depth] = END;
    return path;
}

NOIPA static void handle(const struct path *path, struct request *r) {
    r->at = path->turns;
    trees[path->tree][r->sum % WIDTH](r);
}

static void *serve(void *arg) {
    uint64_t random = (uintptr_t)arg;
    void *cache[CACHED] = {NULL};
    struct path *const paths = malloc((size_t)path_count * sizeof *paths);
    for (int i = 0; paths && i < path_count; i++)
        paths[i] = new_path(&random);
    for (unsigned turn = 0; paths; turn++) {
        struct request r = {.sum = next_random(&random) / WIDTH * WIDTH};
        handle(&paths[turn % (unsigned)path_count], &r);
        free(cache[turn % CACHED]);
        cache[turn % CACHED] = r.result;
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[MAX_THREADS];
    const int count = argc > 1 ? atoi(argv[1]) : 16;
    path_count = argc > 2 ? atoi(argv[2]) : 300;
    if (count < 1 || count > MAX_THREADS || path_count < 1) {
        fprintf(stderr, "usage: bench_server THREADS PATHS\n");
        return 2;
    }
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, serve, (void *)(uintptr_t)(i + 1));
    pthread_join(threads[0], NULL);
    return 0;
}
