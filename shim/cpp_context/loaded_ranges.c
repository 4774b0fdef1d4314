#include "loaded_ranges.h"

#include <stdatomic.h>

/* an object takes four ranges; objects beyond this limit are not followed */
enum { MOST_RANGES = 4096 };

struct range {
    _Atomic uintptr_t start;
    _Atomic uintptr_t size;
    _Atomic uint32_t kinds; /* RANGE_* bits */
};

static struct loaded_ranges {
    struct range all[MOST_RANGES];
    _Atomic uint32_t count;
    _Atomic uint32_t version; /* odd while the list is being written */
} loaded_ranges;

void loaded_ranges_begin(void) {
    /* pairs with the two reads in loaded_range_at() */
    atomic_fetch_add_explicit(&loaded_ranges.version, 1, memory_order_seq_cst);
    atomic_store_explicit(&loaded_ranges.count, 0, memory_order_relaxed);
    /* pairs with the fence in loaded_range_at() */
    atomic_thread_fence(memory_order_seq_cst);
}

static void range_add(uintptr_t start, uintptr_t size, uint32_t kinds) {
    const uint32_t at = atomic_load_explicit(&loaded_ranges.count, memory_order_relaxed);
    if (at == MOST_RANGES)
        return;
    atomic_store_explicit(&loaded_ranges.all[at].start, start, memory_order_relaxed);
    atomic_store_explicit(&loaded_ranges.all[at].size, size, memory_order_relaxed);
    atomic_store_explicit(&loaded_ranges.all[at].kinds, kinds, memory_order_relaxed);
    /* pairs with the acquire in range_find() */
    atomic_store_explicit(&loaded_ranges.count, at + 1, memory_order_release);
}

void loaded_ranges_add(const struct dl_phdr_info *object) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &object->dlpi_phdr[i];
        const uint32_t kinds =
            (segment->p_flags & PF_R ? RANGE_READ : 0) | (segment->p_flags & PF_X ? RANGE_CODE : 0);
        if (segment->p_type == PT_LOAD && kinds)
            range_add(object->dlpi_addr + segment->p_vaddr, segment->p_memsz, kinds);
    }
}

void loaded_ranges_end(void) {
    /* pairs with the two reads in loaded_range_at() */
    atomic_fetch_add_explicit(&loaded_ranges.version, 1, memory_order_seq_cst);
}

uint32_t loaded_ranges_version(void) {
    /* pairs with loaded_ranges_begin() and loaded_ranges_end() */
    return atomic_load_explicit(&loaded_ranges.version, memory_order_seq_cst);
}

static size_t range_find(uintptr_t address, size_t most, enum range_kind kind) {
    /* pairs with the release in range_add() */
    const uint32_t known = atomic_load_explicit(&loaded_ranges.count, memory_order_acquire);
    for (uint32_t i = 0; i < known; i++) {
        const uintptr_t start =
            atomic_load_explicit(&loaded_ranges.all[i].start, memory_order_relaxed);
        const uintptr_t size =
            atomic_load_explicit(&loaded_ranges.all[i].size, memory_order_relaxed);
        if (address - start >= size ||
            !(atomic_load_explicit(&loaded_ranges.all[i].kinds, memory_order_relaxed) & kind))
            continue;
        const uintptr_t left = size - (address - start);
        return left < most ? left : most;
    }
    return 0;
}

size_t loaded_range_at(uintptr_t address, size_t most, enum range_kind kind) {
    const uint32_t before = loaded_ranges_version();
    if (before % 2)
        return 0;
    const size_t size = range_find(address, most, kind);
    /* pairs with the fence in loaded_ranges_begin(): if a range of a later list was read, the later
     * version is read, too */
    atomic_thread_fence(memory_order_seq_cst);
    return loaded_ranges_version() == before ? size : 0;
}
