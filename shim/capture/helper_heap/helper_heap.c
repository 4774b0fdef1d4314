#include "helper_heap.h"

#include "allocator/allocation_path.h"
#include "arch_machine.h"
#include "kernel/first_page.h"
#include "kernel/futex.h"
#include "kernel/profiler_memory.h"
#include "record/thread_table.h"

#include <string.h>
#include <sys/resource.h>

enum {
    MEBIBYTE = 1 << 20,
    /* Limits the heap, without the export queue, to some twenty times the memory that an export of
     * a large program without debug information needs. Under a limit of address space the size is
     * still acceptable: glibc reserves the same for a second thread's arena (malloc/arena.c,
     * HEAP_MAX_SIZE). */
    HEAP_BYTES = 256 * MEBIBYTE,
    HEAP_BYTES_UNDER_LIMIT = 64 * MEBIBYTE,
    MOST_FOR_QUEUE = 512 * MEBIBYTE,
    /* Says how many bytes of addresses one page of the filter's counters covers. */
    FILTER_PAGE_SERVES = PAGE_BYTES << ADDRESS_FILTER_GRANULE_BITS,
    GRANULE = 1 << ADDRESS_FILTER_GRANULE_BITS,
};

#ifndef MADV_KEEPONFORK
#define MADV_KEEPONFORK 19
#endif

IN_FIRST_PAGE struct helper_heap helper_heap;

/* --- the filter --- */

/* Keeps the filter's entries in a child, even in a child that no fork handler sees
 * (profiler_memory.h). If the kernel refuses, the entries are lost in such a child. */
static void keep_on_fork(uintptr_t from) {
    const int saved = errno;
    if (from % FILTER_PAGE_SERVES == 0 &&
        madvise(address_filter_at(&allocation_path.filter, (const void *)from), PAGE_BYTES,
                MADV_KEEPONFORK) != 0)
        helper_heap.forgotten = true;
    errno = saved;
}

static void keep_range_in_filter(uintptr_t from, uintptr_t to) {
    for (uintptr_t at = from; at < to; at += GRANULE) {
        keep_on_fork(at);
        address_filter_stick(&allocation_path.filter, (const void *)at);
    }
}

static uintptr_t end_of_ready(void) {
    const struct page_runs *const runs = &helper_heap.pages.runs;
    return (uintptr_t)runs->base + (uintptr_t)runs->ready * PAGE_BYTES;
}

void helper_heap_keep_in_filter(void) {
    if (profiler_memory_is_emptied() && !helper_heap.forgotten)
        return; /* the kernel has kept the entries */
    keep_range_in_filter((uintptr_t)helper_heap.pages.runs.base, end_of_ready());
}

/* --- opening --- */

static size_t wanted_bytes(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return HEAP_BYTES_UNDER_LIMIT;
    const uint64_t queue = helper_heap.queue_bytes;
    const uint64_t bytes = HEAP_BYTES + (queue < MOST_FOR_QUEUE ? queue : MOST_FOR_QUEUE);
    return (bytes + MEBIBYTE - 1) / MEBIBYTE * MEBIBYTE;
}

void helper_heap_prepare(bool malloc_is_profilers, uint64_t queue_bytes) {
    helper_heap.malloc_is_profilers = malloc_is_profilers;
    helper_heap.queue_bytes = queue_bytes;
}

static bool open_pages(size_t bytes) {
    struct page_runs *const runs = &helper_heap.pages.runs;
    if (runs->base) /* this child was forked while its parent opened the heap */
        page_runs_close(runs);
    if (!page_runs_open(runs, bytes, FILTER_PAGE_SERVES))
        return false;
    const bool is_counted = allocation_path_may_count(runs->base, bytes);
    if (!is_counted)
        page_runs_close(runs);
    return is_counted;
}

/* Opens the heap. Only the helper does so, because it creates the other profiler threads through
 * its libraries. The size is stored last: a child that is forked before has no heap, because the
 * filter's counters of the heap's addresses may still be read-only.
 */
static bool open_heap(void) {
    struct helper_heap *const h = &helper_heap;
    h->refused = !h->malloc_is_profilers || !allocation_path_has_filter() ||
                 (!open_pages(wanted_bytes()) && !open_pages(HEAP_BYTES_UNDER_LIMIT));
    if (h->refused)
        return false;
    atomic_store_explicit(&h->start, (uintptr_t)h->pages.runs.base, memory_order_relaxed);
    /* pairs with helper_heap_holds() on threads of the program */
    atomic_store_explicit(&h->size, (uintptr_t)h->pages.runs.limit * PAGE_BYTES,
                          memory_order_release);
    return true;
}

static bool is_open(void) {
    return atomic_load_explicit(&helper_heap.size, memory_order_relaxed) != 0;
}

bool helper_heap_serves(void) {
    return profiler_tls.is_profiler_thread && (is_open() || (!helper_heap.refused && open_heap()));
}

/* --- the lock between the profiler's threads --- */

static bool is_worker(void) {
    return profiler_tls.inside == OWN_GUARDED;
}

static void helper_heap_lock(void) {
    uint32_t unlocked = 0;
    if (is_worker()) {
        atomic_store_explicit(&helper_heap.entered, true, memory_order_relaxed);
        /* a signal handler that interrupts the work after this point sees the flag; pairs with the
         * fence in helper_heap_unlock() */
        atomic_signal_fence(memory_order_seq_cst);
    }
    if (atomic_compare_exchange_strong(&helper_heap.lock, &unlocked, 1))
        return;
    while (atomic_exchange(&helper_heap.lock, 2) != 0)
        futex_wait(&helper_heap.lock, 2, UINT64_MAX);
}

static void helper_heap_unlock(void) {
    if (atomic_exchange(&helper_heap.lock, 0) == 2)
        futex_wake(&helper_heap.lock);
    atomic_signal_fence(memory_order_seq_cst); /* pairs with the one in helper_heap_lock() */
    if (is_worker())
        atomic_store_explicit(&helper_heap.entered, false, memory_order_relaxed);
}

/* Frees objects that threads of the program have freed. Objects are only added to the list, or the
 * whole list is taken, so ABA cannot occur. */
static void free_remote(void) {
    if (!atomic_load_explicit(&helper_heap.freed, memory_order_relaxed))
        return;
    /* pairs with the release in free_from_afar() */
    void *object = atomic_exchange_explicit(&helper_heap.freed, NULL, memory_order_acquire);
    while (object) {
        void *next;
        memcpy(&next, object, sizeof next);
        if (!page_heap_give(&helper_heap.pages, object))
            return; /* an object was freed twice: the rest of the list cannot be trusted */
        object = next;
    }
}

/* Pairs with the exchange in free_remote(): the helper sees the object's link. */
static void free_from_afar(void *object) {
    void *head = atomic_load_explicit(&helper_heap.freed, memory_order_relaxed);
    do
        memcpy(object, &head, sizeof head);
    while (!atomic_compare_exchange_weak_explicit(&helper_heap.freed, &head, object,
                                                  memory_order_release, memory_order_relaxed));
}

/* Allocates under the lock. The filter covers newly usable memory before an object in it is
 * returned. */
static void *helper_heap_take_locked(size_t size, size_t alignment, bool *zeroed) {
    struct helper_heap *const h = &helper_heap;
    const uintptr_t ready = end_of_ready();
    const bool of_work = is_worker() && h->of_work;
    free_remote();
    h->pages.runs.ceiling = of_work ? h->work_ceiling : h->pages.runs.limit;
    void *const object = page_heap_take(&h->pages, size, alignment, of_work ? h->work : 0, zeroed);
    if (end_of_ready() != ready)
        keep_range_in_filter(ready, end_of_ready());
    return object;
}

void *helper_heap_take(size_t size, size_t alignment) {
    bool zeroed;
    helper_heap_lock();
    void *const object = helper_heap_take_locked(size, alignment, &zeroed);
    helper_heap_unlock();
    if (!object)
        errno = ENOMEM;
    return object;
}

void *helper_heap_take_zeroed(size_t size) {
    bool zeroed;
    helper_heap_lock();
    void *const object = helper_heap_take_locked(size, 1, &zeroed);
    helper_heap_unlock();
    if (!object)
        errno = ENOMEM;
    else if (!zeroed)
        memory_clear(object, size);
    return object;
}

void helper_heap_free(void *object) {
    if (!profiler_tls.is_profiler_thread) {
        free_from_afar(object);
        return;
    }
    helper_heap_lock();
    (void)page_heap_give(&helper_heap.pages, object);
    helper_heap_unlock();
}

/* Returns the space of an object. Threads of the program call this function without the lock,
 * because the description of their own object does not change. */
size_t helper_heap_room(const void *object) {
    return page_heap_room(&helper_heap.pages, object);
}

bool helper_heap_resize(void *object, size_t size) {
    struct helper_heap *const h = &helper_heap;
    const bool of_work = is_worker() && h->of_work;
    helper_heap_lock();
    h->pages.runs.ceiling = of_work ? h->work_ceiling : h->pages.runs.limit;
    const bool resized = page_heap_resize(&h->pages, object, size);
    helper_heap_unlock();
    return resized;
}

/* --- pieces of work --- */

void helper_heap_begin_work(size_t bytes) {
    struct helper_heap *const h = &helper_heap;
    if (!is_open())
        return;
    helper_heap_lock();
    const uint64_t ceiling = h->pages.runs.used + (uint64_t)bytes / PAGE_BYTES;
    h->work_ceiling = ceiling < h->pages.runs.limit ? (uint32_t)ceiling : h->pages.runs.limit;
    if (++h->work == 0) /* 0 means that no work is running */
        h->work = 1;
    h->of_work = true;
    helper_heap_unlock();
}

void helper_heap_end_work(bool left) {
    struct helper_heap *const h = &helper_heap;
    if (!h->of_work)
        return;
    helper_heap_lock();
    h->of_work = false;
    if (left) {
        free_remote();
        page_heap_give_work(&h->pages, h->work);
    }
    helper_heap_unlock();
}

/* --- free memory --- */

void helper_heap_trim(void) {
    if (!is_open())
        return;
    helper_heap_lock();
    free_remote();
    (void)page_runs_trim(&helper_heap.pages.runs);
    helper_heap_unlock();
}

size_t helper_heap_used(void) {
    return (size_t)helper_heap.pages.runs.used * PAGE_BYTES;
}

/* --- fork --- */

/* Repairs the heap in a child. A thread that writes to the heap while the kernel copies it either
 * completes the write before the copy, or waits until the copy is done. So the child sees each
 * thread's writes either complete or not begun; if the lock is free, the heap is consistent. */
void helper_heap_after_fork(void) {
    struct helper_heap *const h = &helper_heap;
    if (atomic_load(&h->lock) != 0 && is_open()) {
        page_heap_freeze(&h->pages);
        /* another profiler thread may have been about to add more entries to the filter */
        h->forgotten = true;
    }
    atomic_store(&h->lock, 0);
    atomic_store(&h->entered, false);
    h->of_work = false;
}
