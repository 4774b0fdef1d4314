// Makes random calls of every allocator entry point on eight threads, with exact books of them.
// usage: random_heap CALLS SEED [no-new] [no-alignment] [no-throw]
// flags: -fno-builtin
//
// Every call is made in a function of its own, named site_*; all that it allocates is booked there,
// so that a profile can be compared with the books by name. The books are in static memory and have
// what the program requested: a realloc that succeeds ends the old object and begins one of the new
// size, one that fails changes nothing, a size of zero is no object. Each thread's calls depend on
// the seed alone, and what one thread passes to another is freed before the end: so a seed always
// gives the same books, however the threads run. "no-new" leaves operator new and delete out. For
// allocators that break their contract "no-alignment" accepts any alignment, and "no-throw" makes
// no impossible request of a throwing operator new.
#include "noipa.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <pthread.h>

#define KEEP(p) __asm__ volatile("" : "+r"(p) : : "memory")

namespace {

enum { THREADS = 8, GENERATIONS = 8, SLOTS = 1500, RING = 64, HEAD = 64 };

// glibc's getline and asprintf begin with these sizes (iogetdelim.c; vasprintf.c until 2.36).
enum { GETLINE_FIRST = 120, ASPRINTF_FIRST = 100, ASPRINTF_MAX = 90 };

// Sites that make a new object come first; the last eight of these are C++'s.
#define SITE_LIST(X)                                                                               \
    X(MALLOC, malloc)                                                                              \
    X(CALLOC, calloc)                                                                              \
    X(REALLOC_NULL, realloc_null)                                                                  \
    X(REALLOCARRAY_NULL, reallocarray_null)                                                        \
    X(ALIGNED_ALLOC, aligned_alloc)                                                                \
    X(MEMALIGN, memalign)                                                                          \
    X(POSIX_MEMALIGN, posix_memalign)                                                              \
    X(VALLOC, valloc)                                                                              \
    X(PVALLOC, pvalloc)                                                                            \
    X(STRDUP, strdup)                                                                              \
    X(STRNDUP, strndup)                                                                            \
    X(GETLINE, getline)                                                                            \
    X(ASPRINTF, asprintf)                                                                          \
    X(NEW, new)                                                                                    \
    X(NEW_NOTHROW, new_nothrow)                                                                    \
    X(NEW_ARRAY, new_array)                                                                        \
    X(NEW_ARRAY_NOTHROW, new_array_nothrow)                                                        \
    X(NEW_ALIGNED, new_aligned)                                                                    \
    X(NEW_ALIGNED_NOTHROW, new_aligned_nothrow)                                                    \
    X(NEW_ARRAY_ALIGNED, new_array_aligned)                                                        \
    X(NEW_ARRAY_ALIGNED_NOTHROW, new_array_aligned_nothrow)                                        \
    X(REALLOC, realloc)                                                                            \
    X(REALLOC_SHRINK, realloc_shrink)                                                              \
    X(REALLOCARRAY, reallocarray)                                                                  \
    X(IN_DESTRUCTOR, in_destructor)

#define SITE_INDEX(index, name) index,
#define SITE_NAME(index, name)  "site_" #name,
enum site_index { SITE_LIST(SITE_INDEX) SITES };
const char *const site_names[SITES] = {SITE_LIST(SITE_NAME)};

// of one site, by one thread: freeing another thread's objects makes its part negative
struct book {
    int64_t objects;
    int64_t bytes;
    int64_t live_objects;
    int64_t live_bytes;
};

struct block {
    uint8_t *p; // nullptr: empty
    size_t size;
    size_t alignment; // as requested; 0: none was
    uint64_t random;  // its contents, and the kind of its deletion
    site_index site;
};

struct ring { // passes objects from one thread to one other
    block blocks[RING];
    std::atomic<uint32_t> put;
    std::atomic<uint32_t> taken;
};

struct worker {
    int index;
    uint64_t random;
    block slots[SLOTS];
    book books[SITES];
    FILE *lines;
    char lines_buffer[BUFSIZ];
};

worker workers[THREADS];
ring rings[THREADS][THREADS];
char text[2048]; // has lines of up to 235 bytes
uint64_t calls_a_generation;
bool with_new = true;
bool check_alignment = true;
bool with_throw = true;
volatile size_t zero = 0;
volatile size_t too_much[] = {SIZE_MAX, size_t{1} << 63, SIZE_MAX - 4096, size_t{1} << 62};

void fail(const char *what, size_t a = 0, size_t b = 0) {
    fprintf(stderr, "random_heap: %s (%zu, %zu)\n", what, a, b);
    abort();
}

uint64_t draw(worker &w) {
    w.random ^= w.random << 13;
    w.random ^= w.random >> 7;
    w.random ^= w.random << 17;
    return w.random * UINT64_C(0x2545f4914f6cdd1d);
}

size_t below(worker &w, size_t bound) {
    return (draw(w) >> 32) % bound;
}

// Draws sizes: mostly small; one in a few hundred is large, one in a few hundred zero.
size_t draw_size(worker &w) {
    const size_t kind = below(w, 256);
    if (kind == 0)
        return 0;
    if (kind == 1)
        return 1 + below(w, 300000);
    return 1 + below(w, kind < 160 ? 128 : kind < 240 ? 2048 : 16384);
}

size_t draw_alignment(worker &w, size_t least) {
    return least << below(w, 10);
}

// --- contents ---

void mark(const block &b) {
    if (b.size == 0)
        return;
    memset(b.p, static_cast<int>(b.random & 255), std::min<size_t>(b.size, HEAD));
    b.p[b.size - 1] = static_cast<uint8_t>(b.random);
}

void check_head(const block &b, size_t size) {
    for (size_t i = 0; i < size && i < HEAD; i++)
        if (b.p[i] != static_cast<uint8_t>(b.random))
            fail("the contents of an object changed");
}

void check(const block &b) {
    check_head(b, b.size);
    if (b.size && b.p[b.size - 1] != static_cast<uint8_t>(b.random))
        fail("an object's last byte changed");
}

// --- books ---

void book_passing(worker &w, site_index site, size_t size) {
    w.books[site].objects += size > 0;
    w.books[site].bytes += static_cast<int64_t>(size);
}

void book_begin(worker &w, const block &b) {
    book_passing(w, b.site, b.size);
    w.books[b.site].live_objects += b.size > 0;
    w.books[b.site].live_bytes += static_cast<int64_t>(b.size);
}

void book_end(worker &w, const block &b) {
    w.books[b.site].live_objects -= b.size > 0;
    w.books[b.site].live_bytes -= static_cast<int64_t>(b.size);
}

} // namespace

// --- the sites ---

#define SITE(name, parameters, call)                                                               \
    NOIPA void *name parameters {                                                                  \
        void *p = call;                                                                            \
        KEEP(p);                                                                                   \
        return p;                                                                                  \
    }

static void *posix(size_t alignment, size_t size) {
    void *p = nullptr;
    return posix_memalign(&p, alignment, size) == 0 ? p : nullptr;
}

static char *format(const char *string, int number) {
    char *p = nullptr;
    return asprintf(&p, "%s%d", string, number) < 0 ? nullptr : p;
}

static char *read_line(FILE *file, size_t *size) {
    char *p = nullptr;
    *size = 0;
    return getline(&p, size, file) < 0 ? nullptr : p;
}

using align = std::align_val_t;

extern "C" {
SITE(site_malloc, (size_t n), malloc(n))
SITE(site_calloc, (size_t count, size_t n), calloc(count, n))
SITE(site_realloc_null, (size_t n), realloc(nullptr, n))
SITE(site_realloc, (void *old, size_t n), realloc(old, n))
SITE(site_realloc_shrink, (void *old, size_t n), realloc(old, n))
SITE(site_reallocarray_null, (size_t count, size_t n), reallocarray(nullptr, count, n))
SITE(site_reallocarray, (void *old, size_t count, size_t n), reallocarray(old, count, n))
SITE(site_aligned_alloc, (size_t a, size_t n), aligned_alloc(a, n))
SITE(site_memalign, (size_t a, size_t n), memalign(a, n))
SITE(site_posix_memalign, (size_t a, size_t n), posix(a, n))
SITE(site_valloc, (size_t n), valloc(n))
SITE(site_pvalloc, (size_t n), pvalloc(n))
SITE(site_strdup, (const char *s), strdup(s))
SITE(site_strndup, (const char *s, size_t n), strndup(s, n))
SITE(site_getline, (FILE * file, size_t *n), read_line(file, n))
SITE(site_asprintf, (const char *s, int number), format(s, number))
SITE(site_in_destructor, (size_t n), malloc(n))
SITE(site_new, (size_t n), operator new(n))
SITE(site_new_nothrow, (size_t n), operator new(n, std::nothrow))
SITE(site_new_array, (size_t n), operator new[](n))
SITE(site_new_array_nothrow, (size_t n), operator new[](n, std::nothrow))
SITE(site_new_aligned, (size_t n, align a), operator new(n, a))
SITE(site_new_aligned_nothrow, (size_t n, align a), operator new(n, a, std::nothrow))
SITE(site_new_array_aligned, (size_t n, align a), operator new[](n, a))
SITE(site_new_array_aligned_nothrow, (size_t n, align a), operator new[](n, a, std::nothrow))

// Calls of operator new that fail are in no book: libstdc++ throws even within those that return
// nullptr, and an exception takes memory of the heap.
SITE(vain_new_nothrow, (size_t n), operator new(n, std::nothrow))
SITE(vain_new_array_aligned_nothrow, (size_t n, align a), operator new[](n, a, std::nothrow))
SITE(vain_new, (size_t n), operator new(n))
}

namespace {

block begin(worker &w, site_index site, void *p, size_t size, size_t alignment = 0) {
    block b = {static_cast<uint8_t *>(p), size, alignment, draw(w), site};
    if (!p)
        fail("an allocation of an ordinary size failed");
    if (check_alignment && size && alignment && reinterpret_cast<uintptr_t>(p) % alignment)
        fail("an object is not aligned as asked", site, alignment);
    book_begin(w, b);
    return b;
}

block begin_aligned(worker &w, site_index site) {
    const size_t a = draw_alignment(w, sizeof(void *));
    const size_t n = draw_size(w);
    if (site == ALIGNED_ALLOC) {
        const size_t whole = (n + a - 1) / a * a;
        return begin(w, site, site_aligned_alloc(a, whole), whole, a);
    }
    void *const p = site == MEMALIGN ? site_memalign(a, n) : site_posix_memalign(a, n);
    // some allocators return NULL for a size of zero
    return p || n ? begin(w, site, p, n, a) : block{};
}

block begin_string(worker &w, site_index site) {
    char string[256];
    const size_t length = below(w, site == ASPRINTF ? ASPRINTF_MAX - 9 : sizeof string - 1);
    memset(string, 'x', length);
    string[length] = 0;
    if (site == STRDUP)
        return begin(w, site, site_strdup(string), length + 1);
    if (site == STRNDUP) {
        const size_t cut = length / 2;
        return begin(w, site, site_strndup(string, cut), cut + 1);
    }
    void *const p = site_asprintf(string, static_cast<int>(below(w, 100000000)));
    // until 2.36 a first buffer is changed for one of the right size; later it is on the stack
#if !__GLIBC_PREREQ(2, 37)
    book_passing(w, site, ASPRINTF_FIRST);
#endif
    return begin(w, site, p, strlen(static_cast<char *>(p)) + 1);
}

// Lines are shorter than two first buffers: so the buffer was enlarged once or not at all.
block begin_line(worker &w) {
    size_t size;
    if (feof(w.lines) || ftell(w.lines) >= static_cast<long>(sizeof text - 300))
        rewind(w.lines);
    void *const p = site_getline(w.lines, &size);
    if (size > GETLINE_FIRST)
        book_passing(w, GETLINE, GETLINE_FIRST);
    return begin(w, GETLINE, p, size);
}

block begin_new(worker &w, site_index site) {
    const size_t n = draw_size(w) + 1; // of zero bytes operator new may make one
    const size_t a = draw_alignment(w, 2 * __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    // libstdc++ rounds the size up where it has aligned_alloc
    const size_t whole = (n + a - 1) / a * a;
    switch (site) {
    case NEW:
        return begin(w, site, site_new(n), n);
    case NEW_NOTHROW:
        return begin(w, site, site_new_nothrow(n), n);
    case NEW_ARRAY:
        return begin(w, site, site_new_array(n), n);
    case NEW_ARRAY_NOTHROW:
        return begin(w, site, site_new_array_nothrow(n), n);
    case NEW_ALIGNED:
        return begin(w, site, site_new_aligned(whole, align{a}), whole, a);
    case NEW_ALIGNED_NOTHROW:
        return begin(w, site, site_new_aligned_nothrow(whole, align{a}), whole, a);
    case NEW_ARRAY_ALIGNED:
        return begin(w, site, site_new_array_aligned(whole, align{a}), whole, a);
    default:
        return begin(w, site, site_new_array_aligned_nothrow(whole, align{a}), whole, a);
    }
}

block allocate(worker &w) {
    const auto site = static_cast<site_index>(below(w, with_new ? REALLOC : NEW));
    const size_t n = draw_size(w);
    switch (site) {
    case MALLOC:
        return begin(w, site, site_malloc(n), n);
    case CALLOC:
        return begin(w, site, site_calloc(n / 8, 8), n / 8 * 8);
    case REALLOC_NULL:
        return begin(w, site, site_realloc_null(n), n);
    case REALLOCARRAY_NULL:
        return begin(w, site, site_reallocarray_null(n, 3), n * 3);
    case VALLOC:
        return begin(w, site, site_valloc(n + 1), n + 1, 4096);
    case PVALLOC:
        return begin(w, site, site_pvalloc(n + 1), n + 1, 4096);
    case ALIGNED_ALLOC:
    case MEMALIGN:
    case POSIX_MEMALIGN:
        return begin_aligned(w, site);
    case STRDUP:
    case STRNDUP:
    case ASPRINTF:
        return begin_string(w, site);
    case GETLINE:
        return begin_line(w);
    default:
        return begin_new(w, site);
    }
}

// --- ends ---

void delete_it(const block &b) {
    const align a{b.alignment};
    const unsigned way = (b.random >> 8) % 3;
    const bool array =
        b.site >= NEW_ARRAY && b.site != NEW_ALIGNED && b.site != NEW_ALIGNED_NOTHROW;
    const bool aligned = b.site >= NEW_ALIGNED;
    switch ((array ? 6 : 0) + (aligned ? 3 : 0) + way) {
    case 0:
        return operator delete(b.p);
    case 1:
        return operator delete(b.p, b.size);
    case 2:
        return operator delete(b.p, std::nothrow);
    case 3:
        return operator delete(b.p, a);
    case 4:
        return operator delete(b.p, b.size, a);
    case 5:
        return operator delete(b.p, a, std::nothrow);
    case 6:
        return operator delete[](b.p);
    case 7:
        return operator delete[](b.p, b.size);
    case 8:
        return operator delete[](b.p, std::nothrow);
    case 9:
        return operator delete[](b.p, a);
    case 10:
        return operator delete[](b.p, b.size, a);
    default:
        return operator delete[](b.p, a, std::nothrow);
    }
}

bool is_news(const block &b) {
    return b.site >= NEW && b.site <= NEW_ARRAY_ALIGNED_NOTHROW;
}

void end(worker &w, block &b) {
    if (!b.p)
        return;
    check(b);
    book_end(w, b);
    if (is_news(b))
        delete_it(b);
    else
        free(b.p);
    b.p = nullptr;
}

// --- changes ---

void resize(worker &w, block &b) {
    const size_t kind = below(w, 4);
    const size_t old = b.size;
    const bool shrinks = kind == 0 && old > 1;
    const size_t n = shrinks ? 1 + below(w, old - 1) : 1 + draw_size(w);
    const site_index site = shrinks ? REALLOC_SHRINK : kind == 1 ? REALLOCARRAY : REALLOC;
    void *const p = shrinks                ? site_realloc_shrink(b.p, n)
                    : site == REALLOCARRAY ? site_reallocarray(b.p, n, 1)
                                           : site_realloc(b.p, n);
    if (!p)
        fail("a realloc to an ordinary size failed");
    b.p = static_cast<uint8_t *>(p);
    check_head(b, old < n ? old : n);
    book_end(w, b);
    b = begin(w, site, p, n);
    mark(b);
}

// Frees the object; some allocators then make an object of no size.
void resize_to_nothing(worker &w, block &b) {
    check(b);
    book_end(w, b);
    void *const rest = site_realloc(b.p, zero);
    if (rest)
        free(rest);
    b.p = nullptr;
}

void resize_in_vain(worker &w, block &b) {
    const size_t n = too_much[below(w, 4)];
    if (below(w, 2) ? site_realloc(b.p, n) : site_reallocarray(b.p, n, 3))
        fail("an impossible realloc succeeded");
    check(b);
}

void throws_bad_alloc(size_t n) {
    try {
        if (vain_new(n))
            fail("an impossible operator new succeeded");
    } catch (const std::bad_alloc &) {
    }
}

void allocate_in_vain(worker &w) {
    const size_t n = too_much[below(w, 4)];
    const size_t way = below(w, !with_new ? 9 : with_throw ? 12 : 11);
    void *p = nullptr;
    switch (way) {
    case 0:
        p = site_malloc(n);
        break;
    case 1:
        p = site_calloc(n, 16);
        break;
    case 2:
        p = site_realloc_null(n);
        break;
    case 3:
        p = site_reallocarray_null(n, 2);
        break;
    case 4:
        p = site_aligned_alloc(64, n / 64 * 64);
        break;
    case 5:
        p = site_memalign(64, n);
        break;
    case 6:
        p = site_posix_memalign(below(w, 2) ? 3 : 64, n);
        break;
    case 7:
        p = site_valloc(n);
        break;
    case 8:
        p = site_pvalloc(too_much[1]); // tcmalloc makes 0 of SIZE_MAX
        break;
    case 9:
        p = vain_new_nothrow(n);
        break;
    case 10:
        // multiples of 64: libstdc++ rounds up
        p = vain_new_array_aligned_nothrow(n / 64 * 64, align{64});
        break;
    default:
        return throws_bad_alloc(n);
    }
    if (p)
        fail("an impossible allocation succeeded", way, n);
}

// --- from thread to thread ---

void hand_over(worker &w, block &b) {
    ring &r = rings[w.index][(w.index + 1 + below(w, THREADS - 1)) % THREADS];
    const uint32_t at = r.put.load(std::memory_order_relaxed);
    if (at - r.taken.load(std::memory_order_acquire) == RING)
        return end(w, b); // the other thread is late: the object is freed all the same
    r.blocks[at % RING] = b;
    r.put.store(at + 1, std::memory_order_release);
    b.p = nullptr;
}

void end_what_came(worker &w, int from) {
    ring &r = rings[from][w.index];
    uint32_t at = r.taken.load(std::memory_order_relaxed);
    for (; at != r.put.load(std::memory_order_acquire); at++) {
        end(w, r.blocks[at % RING]);
        r.taken.store(at + 1, std::memory_order_release);
    }
}

// --- threads ---

struct last_act { // a thread's destructors run after its function has returned
    worker *w = nullptr;
    ~last_act() {
        for (int i = 0; w && i < SLOTS; i += 3) {
            block &b = w->slots[i];
            end(*w, b);
            if (i % 2)
                continue;
            const size_t n = 1 + below(*w, 500);
            b = begin(*w, IN_DESTRUCTOR, site_in_destructor(n), n);
            mark(b);
        }
    }
};
thread_local last_act at_thread_end;

void one_call(worker &w) {
    block &b = w.slots[below(w, SLOTS)];
    const size_t kind = below(w, 64);
    if (kind == 0)
        return b.p && !is_news(b) ? resize_in_vain(w, b) : allocate_in_vain(w);
    if (!b.p) {
        b = allocate(w);
        return b.p ? mark(b) : void();
    }
    if (kind < 3 && !is_news(b))
        return resize_to_nothing(w, b);
    if (kind < 22 && !is_news(b))
        return resize(w, b);
    if (kind < 34)
        return hand_over(w, b);
    end(w, b);
}

void *run_generation(void *arg) {
    worker &w = *static_cast<worker *>(arg);
    at_thread_end.w = &w;
    for (uint64_t i = 0; i < calls_a_generation; i++) {
        one_call(w);
        end_what_came(w, static_cast<int>(i % THREADS));
    }
    return nullptr;
}

void run_threads() {
    pthread_t ids[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&ids[i], nullptr, run_generation, &workers[i]) != 0)
            fail("no thread");
    for (pthread_t id : ids)
        pthread_join(id, nullptr);
}

void prepare(uint64_t seed) {
    size_t at = 0;
    memset(text, 'y', sizeof text);
    for (size_t length = 1; at + length < sizeof text; length = (length * 7 + 13) % 235 + 1) {
        at += length;
        text[at - 1] = '\n';
    }
    for (int i = 0; i < THREADS; i++) {
        worker &w = workers[i];
        w.index = i;
        w.random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + static_cast<uint64_t>(i) * 7919 + 1;
        w.lines = fmemopen(text, sizeof text, "r");
        if (!w.lines)
            fail("no stream");
        setvbuf(w.lines, w.lines_buffer, _IOFBF, sizeof w.lines_buffer);
    }
}

void print_books() {
    printf("{");
    for (int site = 0; site < SITES; site++) {
        book sum = {};
        for (const worker &w : workers) {
            sum.objects += w.books[site].objects;
            sum.bytes += w.books[site].bytes;
            sum.live_objects += w.books[site].live_objects;
            sum.live_bytes += w.books[site].live_bytes;
        }
        printf("%s\"%s\": {\"objects\": %" PRId64 ", \"bytes\": %" PRId64
               ", \"live_objects\": %" PRId64 ", \"live_bytes\": %" PRId64 "}",
               site ? ", " : "", site_names[site], sum.objects, sum.bytes, sum.live_objects,
               sum.live_bytes);
    }
    printf("}\n");
}

} // namespace

int main(int argc, char **argv) {
    const uint64_t calls = argc > 1 ? strtoull(argv[1], nullptr, 10) : 200000;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], nullptr, 10) : 1;
    for (int i = 3; i < argc; i++) {
        with_new &= strcmp(argv[i], "no-new") != 0;
        check_alignment &= strcmp(argv[i], "no-alignment") != 0;
        with_throw &= strcmp(argv[i], "no-throw") != 0;
    }
    calls_a_generation = calls / THREADS / GENERATIONS;
    prepare(seed);
    for (int i = 0; i < GENERATIONS; i++)
        run_threads();
    for (worker &w : workers)
        for (int from = 0; from < THREADS; from++)
            end_what_came(w, from);
    print_books();
    return 0;
}
