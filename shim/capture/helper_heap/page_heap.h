/* Objects of any size on runs of pages (page_runs.h): a malloc of few lines for few threads.
 *
 * An object of up to half a page lies in a slab: a page of objects of one size, of which a bitmap
 * says which are taken. A larger one is a run of pages of its own. Nothing is written into free
 * memory, and a pointer that is no object's is refused. What is taken while `work` is not 0 can be
 * given back all at once: that is how foreign code is left in the middle. Not for several threads
 * at a time.
 * Context: any. Async-signal-safe: yes, where no call is interrupted by another.
 */
#ifndef OTELPROF_PAGE_HEAP_H
#define OTELPROF_PAGE_HEAP_H

#include "page_runs.h"

enum { SIZE_CLASSES = 21, LARGEST_IN_SLAB = PAGE_BYTES / 2 };

struct page_heap {
    struct page_runs runs;
    uint32_t with_room[SIZE_CLASSES]; /* slabs */
    uint32_t frozen;                  /* pages up to this one are neither given nor taken again */
};

/* `work`: 0, or the number of the piece of work that the object is for. `*zeroed`: it holds nothing
 * but zeros. NULL: beyond the ceiling, or refused. `alignment`: a power of two. */
void *page_heap_take(struct page_heap *heap, size_t size, size_t alignment, uint32_t work,
                     bool *zeroed);

/* false: there is no such object. */
bool page_heap_give(struct page_heap *heap, void *object);

/* Bytes that the object has room for; 0: there is no such object. */
size_t page_heap_room(const struct page_heap *heap, const void *object);

/* Whether the object has room for `size` bytes now, where it is. */
bool page_heap_resize(struct page_heap *heap, void *object, size_t size);

/* Gives back all that was taken with this number and is there still. */
void page_heap_give_work(struct page_heap *heap, uint32_t work);

/* What is there stays for good, as it is; its description may be half-written. */
void page_heap_freeze(struct page_heap *heap);

#endif
