// Requests every power of two as alignment, through every function that takes one, many sizes each;
// then passes objects between many threads. Checks every byte before it frees it.
// usage: all_alignments ROUNDS
// flags: -fno-builtin
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <pthread.h>
#include <unistd.h>

namespace {

enum { THREADS = 16, SLOTS = 256, LARGEST_ALIGNMENT = 1 << 26, ROUND = 20000 };

[[noreturn]] void fail(const char *what, size_t alignment, size_t size) {
    fprintf(stderr, "all_alignments: %s (alignment %zu, size %zu)\n", what, alignment, size);
    abort();
}

uint8_t pattern(size_t i, size_t size) {
    return static_cast<uint8_t>(i * 31 + size);
}

void fill(uint8_t *p, size_t size) {
    for (size_t i = 0; i < size; i++)
        p[i] = pattern(i, size);
}

void check(const uint8_t *p, size_t upto, size_t size, size_t alignment) {
    for (size_t i = 0; i < upto; i++)
        if (p[i] != pattern(i, size))
            fail("contents", alignment, size);
}

uint8_t *take(void *object, size_t alignment, size_t size) {
    auto *const p = static_cast<uint8_t *>(object);
    if (!p)
        fail("no memory", alignment, size);
    // mimalloc 2.0.9 does not align sizes that are the alignment: this test does not judge that
    if (!getenv("ANY_ALIGNMENT") && reinterpret_cast<uintptr_t>(p) % alignment)
        fail("not aligned", alignment, size);
    if (malloc_usable_size(p) < size)
        fail("not usable", alignment, size);
    fill(p, size);
    return p;
}

void free_checked(uint8_t *p, size_t alignment, size_t size) {
    check(p, size, size, alignment);
    free(p);
}

// realloc may lose the alignment, but not the contents.
void realloc_checked(uint8_t *p, size_t alignment, size_t size) {
    const size_t larger = size * 2 + 1;
    auto *const grown = static_cast<uint8_t *>(realloc(p, larger));
    if (!grown)
        fail("no realloc", alignment, larger);
    check(grown, size, size, alignment);
    fill(grown, larger);
    auto *const shrunk = static_cast<uint8_t *>(realloc(grown, size));
    if (!shrunk)
        fail("no realloc", alignment, size);
    check(shrunk, size, larger, alignment);
    free(shrunk);
}

void try_alignment(size_t alignment, size_t size) {
    const size_t whole = (size + alignment - 1) / alignment * alignment;
    void *p = nullptr;
    free_checked(take(memalign(alignment, size), alignment, size), alignment, size);
    realloc_checked(take(memalign(alignment, size), alignment, size), alignment, size);
    if (alignment >= sizeof p) {
        if (posix_memalign(&p, alignment, size) != 0)
            fail("posix_memalign", alignment, size);
        free_checked(take(p, alignment, size), alignment, size);
    }
    if (whole > (1u << 22))
        return; // enough bytes were written
    free_checked(take(aligned_alloc(alignment, whole), alignment, whole), alignment, whole);
    const auto a = std::align_val_t{alignment};
    uint8_t *const one = take(operator new(whole, a), alignment, whole);
    check(one, whole, whole, alignment);
    operator delete(one, whole, a);
    uint8_t *const many = take(operator new[](whole, a, std::nothrow), alignment, whole);
    check(many, whole, whole, alignment);
    operator delete[](many, a);
}

void try_all_alignments() {
    static const size_t sizes[] = {1, 7, 8, 24, 100, 1000, 4096, 4097, 70000, 1 << 20};
    for (size_t alignment = 1; alignment <= LARGEST_ALIGNMENT; alignment *= 2)
        for (size_t size : sizes)
            try_alignment(alignment, size);
}

// --- objects that threads pass on: an object begins with its size ---

std::atomic<uint8_t *> slots[SLOTS];
unsigned rounds;

uint64_t draw(uint64_t &random) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random >> 8;
}

uint8_t *make(uint64_t &random) {
    const size_t size = sizeof(size_t) + draw(random) % (draw(random) % 64 ? 2000 : 200000);
    const size_t alignment = size_t{16} << draw(random) % 8;
    void *const p = draw(random) % 4 ? malloc(size) : memalign(alignment, size);
    if (!p)
        fail("no memory", alignment, size);
    fill(static_cast<uint8_t *>(p), size);
    memcpy(p, &size, sizeof size);
    return static_cast<uint8_t *>(p);
}

void end(uint8_t *p) {
    size_t size;
    if (!p)
        return;
    memcpy(&size, p, sizeof size);
    for (size_t i = sizeof size; i < size; i++)
        if (p[i] != pattern(i, size))
            fail("contents that another thread wrote", 0, size);
    free(p);
}

void *hand_around(void *arg) {
    uint64_t random = reinterpret_cast<uintptr_t>(arg) * UINT64_C(0x9e3779b97f4a7c15);
    for (unsigned i = 0; i < rounds * ROUND; i++)
        end(slots[draw(random) % SLOTS].exchange(make(random)));
    return nullptr;
}

} // namespace

int main(int argc, char **argv) {
    pthread_t ids[THREADS];
    rounds = argc > 1 ? static_cast<unsigned>(atoi(argv[1])) : 1;
    for (unsigned i = 0; i < rounds; i++)
        try_all_alignments();
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&ids[i], nullptr, hand_around, reinterpret_cast<void *>(i + 1)) != 0)
            fail("no thread", 0, 0);
    for (pthread_t id : ids)
        pthread_join(id, nullptr);
    for (auto &slot : slots)
        end(slot.exchange(nullptr));
    puts("ok");
    return 0;
}
