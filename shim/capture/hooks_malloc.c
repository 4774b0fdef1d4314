/* The allocator's entry points. On the way that is not sampled, malloc is a compare, a subtraction
 * and a jump; free is one byte load more (test/bench shows the cost). These functions only count
 * down and forward; heap.c decides and records.
 */
#include "allocation.h"
#include "definition.h"
#include "first_page.h"
#include "loaded_object.h"
#include "next.h"
#include "next_symbol.h"
#include "otelprof.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *boot_malloc(size_t size);
static void boot_free(void *object);
static void *boot_calloc(size_t count, size_t size);
static void *boot_realloc(void *object, size_t size);
static void *boot_memalign(size_t alignment, size_t size);
static int boot_posix_memalign(void **object, size_t alignment, size_t size);

/* Until next_resolve() has run, calls come here and make it run. */
struct allocation_path allocation_path = {
    .filter = ADDRESS_FILTER_CLOSED(allocation_path.filter),
    .next = {.malloc = boot_malloc,
             .free = boot_free,
             .calloc = boot_calloc,
             .realloc = boot_realloc,
             .memalign = boot_memalign,
             .aligned_alloc = boot_memalign,
             .posix_memalign = boot_posix_memalign},
};

/* --- the way that is not sampled --- */

RARE static void *malloc_sampled(size_t size) {
    const bool sampled = allocation_is_sampled_slow(size);
    return allocation_made(allocation_path.next.malloc(size), size, sampled);
}

FAST OTELPROF_EXPORT void *malloc(size_t size) {
    if (UNLIKELY(size >= own_tls.alloc_left))
        return malloc_sampled(size);
    own_tls.alloc_left -= size;
    return allocation_path.next.malloc(size);
}

RARE static void free_slow(void *object);

FAST OTELPROF_EXPORT void free(void *object) {
    if (UNLIKELY(address_filter_may_hold(&allocation_path.filter, object)))
        free_slow(object);
    else
        allocation_path.next.free(object);
}

/* --- the other ways in --- */

RARE static void *calloc_sampled(size_t count, size_t size) {
    const size_t bytes = count * size;
    const bool sampled = allocation_is_sampled_slow(bytes);
    return allocation_made(allocation_path.next.calloc(count, size), bytes, sampled);
}

FAST OTELPROF_EXPORT void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return allocation_path.next.calloc(count, size); /* fails, and says so its own way */
    if (UNLIKELY(bytes >= own_tls.alloc_left))
        return calloc_sampled(count, size);
    own_tls.alloc_left -= bytes;
    return allocation_path.next.calloc(count, size);
}

RARE static void *realloc_slow(void *object, size_t size);

FAST OTELPROF_EXPORT void *realloc(void *object, size_t size) {
    if (UNLIKELY(size >= own_tls.alloc_left ||
                 address_filter_may_hold(&allocation_path.filter, object)))
        return realloc_slow(object, size);
    own_tls.alloc_left -= size;
    return allocation_path.next.realloc(object, size);
}

/* Not forwarded: an allocator without reallocarray would get libc's, with a foreign pointer. */
OTELPROF_EXPORT void *reallocarray(void *object, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(object, bytes);
}

OTELPROF_EXPORT void *memalign(size_t alignment, size_t size) {
    const bool sampled = allocation_is_sampled(size);
    return allocation_made(allocation_path.next.memalign(alignment, size), size, sampled);
}

OTELPROF_EXPORT void *aligned_alloc(size_t alignment, size_t size) {
    const bool sampled = allocation_is_sampled(size);
    return allocation_made(allocation_path.next.aligned_alloc(alignment, size), size, sampled);
}

OTELPROF_EXPORT int posix_memalign(void **object, size_t alignment, size_t size) {
    const bool sampled = allocation_is_sampled(size);
    const int error = allocation_path.next.posix_memalign(object, alignment, size);
    if (error == 0)
        (void)allocation_made(*object, size, sampled);
    else if (error == ENOMEM || sampled)
        allocation_failed(sampled);
    return error;
}

OTELPROF_EXPORT void *valloc(size_t size) {
    return memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

IN_FIRST_PAGE static bool malloc_is_ours; /* written once, before there is a second thread */

/* The size asked for is what is counted; what is returned is a whole number of pages. An allocator
 * in front of us that has none (jemalloc) must know what it will be asked to free. */
OTELPROF_EXPORT void *pvalloc(size_t size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes;
    if (__builtin_add_overflow(size, page - 1, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    bytes -= bytes % page;
    if (!malloc_is_ours)
        return memalign(page, bytes ? bytes : page);
    const bool sampled = allocation_is_sampled(size);
    return allocation_made(allocation_path.next.memalign(page, bytes ? bytes : page), size,
                           sampled);
}

/* --- rare: the countdown is over, or was never started --- */

/* A forked child starts its helper here, if the stack shows that no signal handler of the
 * application is in the middle of something. */
static void maybe_start_helper(void) {
    void (*const want_helper)(void) =
        atomic_load_explicit(&capture.want_helper, memory_order_relaxed);
    if (want_helper && thread_is_calm())
        want_helper();
}

static bool is_due(struct thread_state *thread, uint64_t size) {
    if (thread->asked)
        heap_draw_gap(thread);
    if (size >= own_tls.alloc_left)
        return true;
    own_tls.alloc_left -= size;
    return false;
}

void allocation_failed(bool sampled) {
    memory_guard_leave();
    if (sampled)
        heap_draw_gap(own_tls.thread);
}

bool allocation_is_sampled_slow(uint64_t size) {
    if (!atomic_load_explicit(&capture.armed, memory_order_relaxed)) {
        if (atomic_load_explicit(&capture.off, memory_order_relaxed))
            own_tls.alloc_left = UINT64_MAX;
        return false; /* before the start: ask again next time */
    }
    if (own_tls.inside >= OWN_WORK)
        return false;
    struct thread_state *const thread = own_tls.thread;
    if (!thread || thread_is_wiped(thread)) {
        own_tls.alloc_left = UINT64_MAX; /* a thread that nobody registered is left alone */
        return false;
    }
    const bool due = is_due(thread, size);
    if (own_tls.inside) {
        if (due)
            thread_count_drop(thread, DROP_BUSY);
        return false;
    }
    maybe_start_helper();
    if (!capture.alloc_on) {
        own_tls.alloc_left = UINT64_MAX;
        return false;
    }
    return due && size > 0 && size <= PTRDIFF_MAX;
}

static bool is_boot_memory(const void *object);

static void free_slow(void *object) {
    struct live_object taken;
    if (is_boot_memory(object))
        return;
    (void)heap_forget(object, &taken);
    allocation_path.next.free(object);
}

static void *realloc_slow(void *object, size_t size) {
    if (is_boot_memory(object))
        return boot_realloc(object, size);
    struct live_object taken;
    const bool was_sampled =
        address_filter_may_hold(&allocation_path.filter, object) && heap_forget(object, &taken);
    const bool sampled = allocation_is_sampled(size);
    void *const moved = allocation_path.next.realloc(object, size);
    if (!moved && size > 0 && was_sampled)
        heap_put_back(&taken);
    return allocation_made(moved, size, sampled);
}

/* --- boot: before the next allocator is known --- */

enum { BOOT_BYTES = 16384 };

/* What dlsym itself may allocate while it looks for malloc. Never reused; freed by being ignored.
 */
static _Alignas(16) char boot_bytes[BOOT_BYTES];
IN_FIRST_PAGE static struct {
    size_t used;
    bool resolving;
} boot;

static bool is_boot_memory(const void *object) {
    const uintptr_t p = (uintptr_t)object;
    return p >= (uintptr_t)boot_bytes && p < (uintptr_t)boot_bytes + BOOT_BYTES;
}

static void *boot_take(size_t alignment, size_t size) {
    const size_t align = alignment < 16 ? 16 : alignment;
    const size_t start = (boot.used + align - 1) / align * align + 16;
    if (size > BOOT_BYTES || start + size > BOOT_BYTES)
        return NULL;
    boot.used = start + size;
    memcpy(&boot_bytes[start - sizeof size], &size, sizeof size); /* for realloc */
    address_filter_stick(&allocation_path.filter, &boot_bytes[start]);
    return &boot_bytes[start];
}

/* false: resolving is under way, on this thread, at the very start of the process. */
static bool resolved(void) {
    if (boot.resolving)
        return false;
    (void)next_resolve();
    return true;
}

static void *boot_malloc(size_t size) {
    return resolved() ? allocation_path.next.malloc(size) : boot_take(16, size);
}

static void boot_free(void *object) {
    if (resolved())
        allocation_path.next.free(object);
}

static void *boot_calloc(size_t count, size_t size) {
    if (resolved())
        return allocation_path.next.calloc(count, size);
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : boot_take(16, bytes);
}

static void *boot_realloc(void *object, size_t size) {
    if (!is_boot_memory(object))
        return resolved() ? allocation_path.next.realloc(object, size) : boot_take(16, size);
    void *const moved = malloc(size);
    size_t old;
    memcpy(&old, (char *)object - sizeof old, sizeof old);
    if (moved)
        memcpy(moved, object, old < size ? old : size);
    return moved;
}

static void *boot_memalign(size_t alignment, size_t size) {
    return resolved() ? allocation_path.next.memalign(alignment, size) : boot_take(alignment, size);
}

static int boot_posix_memalign(void **object, size_t alignment, size_t size) {
    if (resolved())
        return allocation_path.next.posix_memalign(object, alignment, size);
    *object = boot_take(alignment, size);
    return *object ? 0 : ENOMEM;
}

void hooks_malloc_keep_boot_memory(void) {
    for (size_t at = 0; at < boot.used; at += 16)
        address_filter_stick(&allocation_path.filter, &boot_bytes[at]);
}

/* --- resolving --- */

static bool look_up(const char *name, void *target) {
    void *const found = next_symbol(name);
    if (found)
        memcpy(target, &found, sizeof found);
    return found != NULL;
}

/* The next, also where the program's own malloc stands before ours: it, and what it does not bring
 * itself, finds behind it what it would have found without us. */
static void resolve(void) {
    struct next_allocator found = allocation_path.next;
    bool complete = look_up("malloc", &found.malloc);
    complete &= look_up("free", &found.free);
    complete &= look_up("calloc", &found.calloc);
    complete &= look_up("realloc", &found.realloc);
    if (!complete)
        return;
    (void)look_up("memalign", &found.memalign);
    (void)look_up("aligned_alloc", &found.aligned_alloc);
    (void)look_up("posix_memalign", &found.posix_memalign);
    allocation_path.next = found;
}

const void *next_malloc_base(void) {
    (void)next_resolve();
    return loaded_object_base((void *)(uintptr_t)allocation_path.next.malloc);
}

bool next_resolve(void) {
    if (allocation_path.next.malloc != boot_malloc)
        return malloc_is_ours;
    boot.resolving = true;
    malloc_is_ours = !definition_comes_before_ours("malloc");
    resolve();
    boot.resolving = false;
    return malloc_is_ours;
}
