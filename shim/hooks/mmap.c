/* Hooks mmap and its like, if OTEL_PROFILER_TYPES has `mmap`: anonymous memory that the program
 * maps itself is an allocation, and live until it is unmapped.
 *
 * Not counted: files, reservations without access (PROT_NONE), and mappings of an allocator, whose
 * objects are counted instead. libc's mappings (thread stacks, large mallocs) bypass these hooks.
 * If the beginning of a mapping is unmapped, the rest stays live. If its end or middle is unmapped,
 * or the whole mapping together with a preceding one, the mapping counts in full until a call names
 * its beginning. mremap changes the size of a live mapping, or splits a mapping whose beginning it
 * moves. It never counts as an allocation, because an unsampled mapping may be a file's. Without
 * `mmap` in OTEL_PROFILER_TYPES these exports are removed at the start, and the hooks only
 * forward. */
#include "allocation.h"
#include "arch_memory.h"
#include "bare_syscall.h"
#include "entry.h"
#include "hooks.h"
#include "readable_memory.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool mapping_counts(int protection, int flags, const void *caller) {
    if (!capture.mmap_on || !(settings_types(&capture.settings) & PROFILE_MMAP) ||
        !(flags & MAP_ANONYMOUS) || protection == PROT_NONE)
        return false;
    const struct cfi_tables *const object =
        fixed_modules_at(&capture.modules.fixed, (uintptr_t)caller);
    return !object || object->start != capture.allocator_base;
}

/* Removes the sampled mapping that begins at `address`, before memory there is unmapped: the rest
 * of the mapping will begin at a higher address. Returns false if there is none. */
static bool mapping_forget(void *address, struct live_object *taken) {
    return capture.mmap_on && address_filter_may_hold(&allocation_path.filter, address) &&
           heap_forget(&capture.heap, address, taken);
}

static void keep_rest(const struct live_object *taken, size_t size) {
    const size_t page = arch_page_bytes();
    const size_t gone = (size + page - 1) / page * page; /* the kernel unmaps whole pages */
    struct live_object rest = *taken;
    if ((double)(gone + page) > taken->size || !word_is_readable(taken->address + gone))
        return; /* the whole mapping was unmapped, or its end before, which no hook saw */
    rest.address += gone;
    heap_resize(&rest, taken->size - (double)gone);
    heap_put_back(&capture.heap, &rest);
}

/* Records what is left of `taken`, a sampled mapping, after a system call for unmapping `size`
 * bytes of it: the rest, or the whole mapping if the call failed. */
static void commit_resize(const struct live_object *taken, size_t size, bool done) {
    if (done)
        keep_rest(taken, size);
    else
        heap_put_back(&capture.heap, taken);
}

HOOK void *mmap(void *wanted, size_t size, int protection, int flags, int file, off_t offset) {
    struct live_object replaced;
    const bool counted = mapping_counts(protection, flags, __builtin_return_address(0));
    const bool replaces = (flags & MAP_FIXED) && mapping_forget(wanted, &replaced);
    const bool sampled = counted && allocation_is_sampled(size);
    void *const memory =
        (void *)bare_syscall(SYS_mmap, (long)wanted, (long)size, protection, flags, file, offset);
    if (replaces)
        commit_resize(&replaced, size, memory != MAP_FAILED);
    if (memory != MAP_FAILED)
        (void)allocation_made(memory, size, sampled);
    else if (sampled)
        allocation_failed(sampled);
    return memory;
}

/* Hooks mmap64(), which does the same as mmap() on 64-bit systems. */
HOOK void *mmap64(void *wanted, size_t size, int protection, int flags, int file, off_t offset)
    __attribute__((alias("mmap")));

HOOK int munmap(void *address, size_t size) {
    struct live_object taken;
    const bool found = mapping_forget(address, &taken);
    const int result = (int)bare_syscall(SYS_munmap, (long)address, (long)size, 0, 0, 0, 0);
    if (found)
        commit_resize(&taken, size, result == 0);
    return result;
}

HOOK void *mremap(void *old, size_t old_size, size_t size, int flags, ...) {
    struct live_object taken;
    struct live_object replaced;
    va_list arguments;
    va_start(arguments, flags);
    void *const wanted = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    const bool found = mapping_forget(old, &taken);
    const bool replaces = wanted && mapping_forget(wanted, &replaced);
    void *const memory = (void *)bare_syscall(SYS_mremap, (long)old, (long)old_size, (long)size,
                                              flags, (long)wanted, 0);
    if (replaces)
        commit_resize(&replaced, size, memory != MAP_FAILED);
    if (found && memory != MAP_FAILED &&
        old_size > 0) { /* an old_size of 0 creates a second view of shared memory */
        keep_rest(&taken, old_size);
        taken.address = (uintptr_t)memory;
        heap_resize(&taken, (double)size);
    }
    if (found)
        heap_put_back(&capture.heap, &taken);
    return memory;
}

size_t hooks_mmap_unneeded(struct symbol *unneeded) {
    static const char *const names[] = {
#define HOOKED(...)
#define HOOKED_MMAP(number, call, result, name, parameters) #name,
#include "hooked.def"
    };
    _Static_assert(HOOKS_MMAP_FUNCTIONS == sizeof names / sizeof *names, "room for each");
    if (capture.mmap_on)
        return 0;
    for (size_t i = 0; i < HOOKS_MMAP_FUNCTIONS; i++)
        unneeded[i] = (struct symbol){.name = names[i]};
    return HOOKS_MMAP_FUNCTIONS;
}
