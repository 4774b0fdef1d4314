/* Allocates objects of any size on runs of pages (page_runs.h): a small malloc for few threads.
 *
 * An object of up to half a page is in a slab: a page of objects of one size, with a bitmap of the
 * objects in use. A larger object is a run of pages of its own. The heap writes nothing into free
 * memory, and refuses a pointer to no object. Objects allocated for a piece of work (`work` is not
 * 0) can be freed all at once, after foreign code was aborted (memory_guard.h). The caller must not
 * let two threads call the functions at a time. Context: any. Async-signal-safe: yes, if no call
 * interrupts another.
 */
#ifndef OTELPROF_PAGE_HEAP_H
#define OTELPROF_PAGE_HEAP_H

#include "page_runs.h"

enum { SIZE_CLASSES = 32, LARGEST_IN_SLAB = PAGE_BYTES / 2 };

struct page_heap {
    struct page_runs runs;
    uint32_t with_room[SIZE_CLASSES]; /* list of slabs that have free objects */
    uint32_t frozen;                  /* pages up to this one are never freed or allocated again */
};

/* Allocates an object. `work`: the number of the piece of work that the object belongs to, or 0.
 * `*zeroed`: set to true if the object holds zeros only. `alignment`: a power of two. Returns NULL
 * beyond the ceiling, or if the kernel refused. */
void *page_heap_take(struct page_heap *heap, size_t size, size_t alignment, uint32_t work,
                     bool *zeroed);

/* Frees an object. Returns false if there is no object at this address. */
bool page_heap_give(struct page_heap *heap, void *object);

/* Returns the bytes that the object has space for; 0: there is no such object. */
size_t page_heap_room(const struct page_heap *heap, const void *object);

/* Returns true if the object now has space for `size` bytes, without a move. */
bool page_heap_resize(struct page_heap *heap, void *object, size_t size);

/* Frees all objects of this piece of work that are still in use. */
void page_heap_give_work(struct page_heap *heap, uint32_t work);

/* Keeps all present objects for ever, because their descriptions may be half-written. */
void page_heap_freeze(struct page_heap *heap);

#endif
