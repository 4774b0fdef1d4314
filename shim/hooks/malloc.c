/* Hooks the allocator's entry points.
 *
 * On the unsampled path, malloc is a compare, a subtraction and a jump; free is one byte load more
 * (test/bench shows the cost). These functions only count down and forward; heap.c decides and
 * records. */
#include "allocation.h"
#include "capture/change_settings.h"
#include "capture/helper_heap/helper_heap.h"
#include "capture/helper_heap/memory_guard.h"
#include "capture/record/countdown.h"
#include "capture/record/own_work.h"
#include "entry.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the profiler's threads: helper_heap.h --- */

/* Returns `object`, which helper_heap has allocated. Does not return if the allocation failed under
 * a guard. */
static void *taken_by_us(void *object) {
    if (!object)
        allocation_failed(false);
    return object;
}

static int posix_memalign_for_helper(void **object, size_t alignment, size_t size) {
    void *const taken = taken_by_us(helper_heap_take(size, alignment));
    if (!taken)
        return ENOMEM;
    *object = taken;
    return 0;
}

/* --- the unsampled path --- */

RARE static void *malloc_sampled(size_t size) {
    if (helper_heap_serves())
        return taken_by_us(helper_heap_take(size, 1));
    const bool sampled = allocation_is_sampled_slow(size);
    return allocation_made(allocation_path.next.malloc(size), size, sampled);
}

FAST FAST_HOOK void *malloc(size_t size) {
    if (UNLIKELY(size >= profiler_tls.alloc_left))
        return malloc_sampled(size);
    profiler_tls.alloc_left -= size;
    return allocation_path.next.malloc(size);
}

RARE static void free_slow(void *object);

FAST FAST_HOOK void free(void *object) {
    if (UNLIKELY(address_filter_may_hold(&allocation_path.filter, object)))
        free_slow(object);
    else
        allocation_path.next.free(object);
}

/* --- the other entry points --- */

RARE static void *calloc_sampled(size_t count, size_t size) {
    const size_t bytes = count * size;
    if (helper_heap_serves())
        return taken_by_us(helper_heap_take_zeroed(bytes));
    const bool sampled = allocation_is_sampled_slow(bytes);
    return allocation_made(allocation_path.next.calloc(count, size), bytes, sampled);
}

FAST FAST_HOOK void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        /* lets the next calloc fail, which sets errno in its own way */
        return allocation_path.next.calloc(count, size);
    if (UNLIKELY(bytes >= profiler_tls.alloc_left))
        return calloc_sampled(count, size);
    profiler_tls.alloc_left -= bytes;
    return allocation_path.next.calloc(count, size);
}

RARE static void *realloc_slow(void *object, size_t size);

FAST FAST_HOOK void *realloc(void *object, size_t size) {
    if (UNLIKELY(size >= profiler_tls.alloc_left ||
                 address_filter_may_hold(&allocation_path.filter, object)))
        return realloc_slow(object, size);
    profiler_tls.alloc_left -= size;
    return allocation_path.next.realloc(object, size);
}

/* Implements reallocarray() by the hooks of this file: if the program's allocator lacks it, libc's
 * function would be called, which returns a pointer that this allocator does not own. */
HOOK void *reallocarray(void *object, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(object, bytes);
}

HOOK void *memalign(size_t alignment, size_t size) {
    if (UNLIKELY(profiler_tls.is_profiler_thread) && helper_heap_serves())
        return taken_by_us(helper_heap_take(size, alignment));
    const bool sampled = allocation_is_sampled(size);
    return allocation_made(allocation_path.next.memalign(alignment, size), size, sampled);
}

HOOK void *aligned_alloc(size_t alignment, size_t size) {
    if (UNLIKELY(profiler_tls.is_profiler_thread) && helper_heap_serves())
        return taken_by_us(helper_heap_take(size, alignment));
    const bool sampled = allocation_is_sampled(size);
    return allocation_made(allocation_path.next.aligned_alloc(alignment, size), size, sampled);
}

HOOK int posix_memalign(void **object, size_t alignment, size_t size) {
    if (UNLIKELY(profiler_tls.is_profiler_thread) && helper_heap_serves())
        return posix_memalign_for_helper(object, alignment, size);
    const bool sampled = allocation_is_sampled(size);
    const int error = allocation_path.next.posix_memalign(object, alignment, size);
    if (error == 0)
        (void)allocation_made(*object, size, sampled);
    else if (error == ENOMEM || sampled)
        allocation_failed(sampled);
    return error;
}

HOOK void *valloc(size_t size) {
    return memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

/* Counts the requested size; the result is a whole number of pages. Calls memalign because an
 * allocator that lacks pvalloc (jemalloc) must own every object that it frees. */
HOOK void *pvalloc(size_t size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes;
    if (__builtin_add_overflow(size, page - 1, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    bytes -= bytes % page;
    if (!capture.malloc_is_profilers || profiler_tls.is_profiler_thread)
        return memalign(page, bytes ? bytes : page);
    const bool sampled = allocation_is_sampled(size);
    return allocation_made(allocation_path.next.memalign(page, bytes ? bytes : page), size,
                           sampled);
}

/* --- rare: the countdown has ended, or never began (countdown.h) --- */

void allocation_failed(bool sampled) {
    memory_guard_leave();
    if (sampled)
        heap_draw_gap(&capture.heap, profiler_tls.thread);
}

void allocation_forget(const void *object) {
    struct live_object taken;
    (void)heap_forget(&capture.heap, object, &taken);
}

/* Decides by the first of these reasons that holds:
 * 1. The thread is the profiler's: never sampled.
 * 2. Capture is not armed: off for good (stop counting), or not started yet (ask again).
 * 3. The thread is doing the profiler's own calm work (OWN_WORK), or has left: neither the
 *    application's allocation nor a lost sample.
 * 4. The thread is unregistered, or its state is wiped (a forked child's): stop counting.
 * 5. A sample is being taken on this thread, and was not left by a jump: drop the one that is due.
 * 6. The countdown is over, for an allocation sample or another event. The settings may have
 *    changed, and a helper may be wanted, whether or not the allocation is sampled.
 */
bool allocation_is_sampled_slow(uint64_t size) {
    if (profiler_tls.is_profiler_thread)
        return false;
    if (!atomic_load_explicit(&capture.armed, memory_order_relaxed)) {
        if (atomic_load_explicit(&capture_is_off, memory_order_relaxed))
            profiler_tls.alloc_left = COUNTDOWN_NEVER;
        return false; /* before the start: check again next time */
    }
    if (profiler_tls.inside >= OWN_WORK)
        return false;
    struct thread_state *const thread = profiler_tls.thread;
    if (!thread || thread_is_wiped(thread)) {
        profiler_tls.alloc_left = COUNTDOWN_NEVER; /* an unregistered thread is not sampled */
        return false;
    }
    if (atomic_load_explicit(&thread->events, memory_order_relaxed))
        heap_draw_gap(&capture.heap, thread);
    const bool due = countdown_reaches_sample(thread, size);
    if (own_work_goes_on(thread, (uintptr_t)__builtin_frame_address(0))) {
        if (due)
            thread_count_drop(thread, DROP_BUSY);
        return false;
    }
    const bool sampled = due && size > 0 && size <= PTRDIFF_MAX && heap_is_on(&capture.heap);
    if (capture_follow_settings(thread) && !sampled)
        heap_draw_gap(&capture.heap, thread);
    /* starts the helper of a forked child, if the stack shows that no signal handler of the
     * application is running */
    void (*const want_helper)(bool) =
        atomic_load_explicit(&capture.want_helper, memory_order_relaxed);
    if (want_helper)
        want_helper(false);
    if (!capture.alloc_on)
        profiler_tls.alloc_left = COUNTDOWN_NEVER;
    return sampled;
}

static void free_slow(void *object) {
    if (helper_heap_holds(object)) {
        helper_heap_free(object);
        return;
    }
    allocation_forget(object);
    allocation_path.next.free(object);
}

/* Moves an object from or to the helper's heap: a program's thread grows an object of the loader or
 * libc, or a profiler thread grows one of its own. */
static void *realloc_copied(void *object, size_t size) {
    if (profiler_tls.is_profiler_thread && size > 0 && helper_heap_resize(object, size))
        return object;
    void *const moved = size > 0 ? malloc(size) : NULL;
    const size_t room = helper_heap_room(object);
    if (moved)
        memcpy(moved, object, room < size ? room : size);
    if (moved || size == 0)
        helper_heap_free(object);
    return moved;
}

static void *realloc_slow(void *object, size_t size) {
    if (helper_heap_holds(object))
        return realloc_copied(object, size);
    if (!object && helper_heap_serves())
        return malloc(size);
    struct live_object taken;
    const bool was_sampled = address_filter_may_hold(&allocation_path.filter, object) &&
                             heap_forget(&capture.heap, object, &taken);
    const bool sampled = allocation_is_sampled(size);
    void *const moved = allocation_path.next.realloc(object, size);
    if (!moved && size > 0 && was_sampled)
        heap_put_back(&capture.heap, &taken);
    return allocation_made(moved, size, sampled);
}
