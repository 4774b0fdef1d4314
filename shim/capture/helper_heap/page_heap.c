#include "page_heap.h"

#include "arch_machine.h"

/* Lists the sizes of small objects: four per power of two, adjusted to fill a page well. Those
 * above LARGEST_IN_SLAB are not used. */
static const uint16_t class_bytes[SIZE_CLASSES] = {
    16,   32,   48,   64,   80,   96,    112,   128,   160,   192,   224,
    256,  320,  384,  448,  512,  640,   816,   1024,  1360,  2048,  2720,
    3264, 4096, 5040, 6544, 8192, 10912, 13104, 16384, 21840, 32768,
};

static uint32_t class_of(size_t size) {
    uint32_t size_class = 0;
    while (class_bytes[size_class] < size)
        size_class++;
    return size_class;
}

/* Returns the size to allocate. If an alignment is needed, that size is a power of two: a slab's
 * objects are at multiples of their size, and so are aligned. */
static size_t size_for(size_t size, size_t alignment) {
    if (alignment <= 16)
        return size;
    size_t power = alignment;
    while (power < size && power <= LARGEST_IN_SLAB)
        power *= 2;
    return power;
}

static uint32_t objects_in(const struct page *slab) {
    return PAGE_BYTES / class_bytes[slab->size_class];
}

/* --- bits --- */

static bool bit_is_set(const uint64_t *bits, uint32_t i) {
    return bits[i / 64] >> i % 64 & 1;
}

static void set_bit(uint64_t *bits, uint32_t i) {
    bits[i / 64] |= UINT64_C(1) << i % 64;
}

static void clear_bit(uint64_t *bits, uint32_t i) {
    bits[i / 64] &= ~(UINT64_C(1) << i % 64);
}

static uint32_t first_clear(const uint64_t *bits) {
    uint32_t word = 0;
    while (bits[word] == UINT64_MAX)
        word++;
    return word * 64 + (uint32_t)__builtin_ctzll(~bits[word]);
}

/* --- taking --- */

static uint32_t new_slab(struct page_heap *heap, uint32_t size_class) {
    bool zeroed;
    const uint32_t number = page_runs_take(&heap->runs, 1, 1, PAGE_SLAB, &zeroed);
    if (!number)
        return NO_RUN;
    struct page *const slab = &heap->runs.pages[number];
    slab->size_class = (uint8_t)size_class;
    slab->used = 0;
    slab->work = 0;
    memory_clear(slab->taken, sizeof slab->taken);
    page_list_add(&heap->runs, &heap->with_room[size_class], number);
    return number;
}

static void *take_small(struct page_heap *heap, uint32_t size_class, uint32_t work) {
    uint32_t number = heap->with_room[size_class];
    if (!number)
        number = new_slab(heap, size_class);
    if (!number)
        return NULL;
    struct page *const slab = &heap->runs.pages[number];
    const uint32_t i = first_clear(slab->taken);
    set_bit(slab->taken, i);
    if (work) {
        if (slab->work != work) { /* the marks in the slab belong to earlier work */
            slab->work = work;
            memory_clear(slab->of_work, sizeof slab->of_work);
        }
        set_bit(slab->of_work, i);
    }
    if (++slab->used == objects_in(slab))
        page_list_remove(&heap->runs, &heap->with_room[size_class], number);
    return (char *)page_runs_address(&heap->runs, number) + i * class_bytes[size_class];
}

static void *take_large(struct page_heap *heap, size_t size, size_t alignment, uint32_t work,
                        bool *zeroed) {
    const size_t most = (size_t)heap->runs.limit * PAGE_BYTES;
    if (size > most || alignment > heap->runs.alignment)
        return NULL;
    const uint32_t pages = (uint32_t)((size + PAGE_BYTES - 1) / PAGE_BYTES);
    const uint32_t align = alignment > PAGE_BYTES ? (uint32_t)(alignment / PAGE_BYTES) : 1;
    const uint32_t first = page_runs_take(&heap->runs, pages, align, PAGE_RUN, zeroed);
    if (!first)
        return NULL;
    heap->runs.pages[first].work = work;
    return page_runs_address(&heap->runs, first);
}

void *page_heap_take(struct page_heap *heap, size_t size, size_t alignment, uint32_t work,
                     bool *zeroed) {
    const size_t needed = size_for(size, alignment);
    *zeroed = false;
    if (needed <= LARGEST_IN_SLAB)
        return take_small(heap, class_of(needed), work);
    return take_large(heap, size > LARGEST_IN_SLAB ? size : LARGEST_IN_SLAB, alignment, work,
                      zeroed);
}

/* --- finding the object at an address --- */

/* Returns the object's page, and in `*i` its index in a slab. NO_RUN: there is no such object. */
static uint32_t page_of(const struct page_heap *heap, const void *object, uint32_t *i) {
    const uint32_t number = page_runs_page(&heap->runs, object);
    if (!number || number > heap->runs.top)
        return NO_RUN;
    const struct page *const page = &heap->runs.pages[number];
    const uint32_t offset = (uint32_t)((uintptr_t)object % PAGE_BYTES);
    *i = 0;
    if (page->kind == PAGE_RUN)
        return offset == 0 ? number : NO_RUN;
    if (page->kind != PAGE_SLAB || offset % class_bytes[page->size_class] != 0)
        return NO_RUN;
    *i = offset / class_bytes[page->size_class];
    return *i < objects_in(page) && bit_is_set(page->taken, *i) ? number : NO_RUN;
}

size_t page_heap_room(const struct page_heap *heap, const void *object) {
    uint32_t i;
    const uint32_t number = page_of(heap, object, &i);
    const struct page *const page = &heap->runs.pages[number];
    if (!number)
        return 0;
    return page->kind == PAGE_SLAB ? class_bytes[page->size_class]
                                   : (size_t)page->pages * PAGE_BYTES;
}

/* --- giving back --- */

static void give_small(struct page_heap *heap, uint32_t number, uint32_t i) {
    struct page *const slab = &heap->runs.pages[number];
    uint32_t *const with_room = &heap->with_room[slab->size_class];
    if (slab->used == objects_in(slab))
        page_list_add(&heap->runs, with_room, number);
    clear_bit(slab->taken, i);
    clear_bit(slab->of_work, i);
    if (--slab->used == 0) {
        page_list_remove(&heap->runs, with_room, number);
        page_runs_give(&heap->runs, number);
    }
}

bool page_heap_give(struct page_heap *heap, void *object) {
    uint32_t i;
    const uint32_t number = page_of(heap, object, &i);
    if (!number)
        return false;
    if (number <= heap->frozen)
        return true;
    if (heap->runs.pages[number].kind == PAGE_SLAB)
        give_small(heap, number, i);
    else
        page_runs_give(&heap->runs, number);
    return true;
}

bool page_heap_resize(struct page_heap *heap, void *object, size_t size) {
    uint32_t i;
    const uint32_t number = page_of(heap, object, &i);
    const struct page *const page = &heap->runs.pages[number];
    if (!number)
        return false;
    if (page->kind == PAGE_SLAB)
        return size <= class_bytes[page->size_class] &&
               class_of(size) + 2 >= page->size_class; /* the new size is not much smaller */
    if (number <= heap->frozen || size <= LARGEST_IN_SLAB ||
        size > (size_t)heap->runs.limit * PAGE_BYTES)
        return false;
    return page_runs_resize(&heap->runs, number, (uint32_t)((size + PAGE_BYTES - 1) / PAGE_BYTES));
}

static void give_work_of_slab(struct page_heap *heap, uint32_t number) {
    struct page *const slab = &heap->runs.pages[number];
    const uint32_t count = objects_in(slab);
    for (uint32_t i = 0; i < count && slab->kind == PAGE_SLAB; i++)
        if (bit_is_set(slab->taken, i) && bit_is_set(slab->of_work, i))
            give_small(heap, number, i);
}

void page_heap_give_work(struct page_heap *heap, uint32_t work) {
    for (uint32_t number = heap->frozen + 1; number <= heap->runs.top; number++) {
        const struct page *const page = &heap->runs.pages[number];
        if (page->work != work)
            continue;
        if (page->kind == PAGE_SLAB)
            give_work_of_slab(heap, number);
        else if (page->kind == PAGE_RUN)
            page_runs_give(&heap->runs, number);
    }
}

void page_heap_freeze(struct page_heap *heap) {
    heap->frozen = heap->runs.top;
    heap->runs.used = heap->frozen;
    /* keeps free runs of later pages from joining this page */
    heap->runs.pages[heap->frozen].kind = PAGE_INSIDE;
    memory_clear(heap->runs.free, sizeof heap->runs.free);
    memory_clear(heap->with_room, sizeof heap->with_room);
}
