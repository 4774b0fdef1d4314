/* Hooks calls in which a worker waits for its next piece of work, or takes it: accept4, epoll_wait,
 * recvfrom, recvmsg and waitpid.
 *
 * Related calls (accept, poll, read, recv, select, sleep, wait) have names that programs and
 * libraries give to variables and functions of their own, so they are not hooked here: the
 * program's calls would be bound to ours by mistake. Also, an allocator may read, or sleep for a
 * lock; in such a call no thread may be created, because creating a thread allocates.
 *
 * A forked child gets its helper thread only after some work, and only in a call in which a thread
 * may be created (lifecycle.c). A malloc is such a call; the calls hooked here serve a worker that
 * makes no malloc after its first sample, because its allocator reuses memory. The hooks only start
 * that helper: at all other times they cost a compare and a jump. They forward with the registers
 * and the stack of the call, so that cancellation and unwinders see libc's function called by the
 * program. */
#include "arch_forward.h"
#include "capture/capture.h"
#include "capture/kernel/first_page.h"
#include "capture/symbols/next_symbol.h"
#include "otelprof.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* Lists the indices in hooks_waits_next. */
enum {
#define HOOKED(...)
#define HOOKED_WAIT(number, call, version, result, name, parameters) PLACE_##name,
#include "hooked.def"
    CALLS
};

extern void (*hooks_waits_next[])(void);

/* Resolves the next functions. Context: any; idempotent. The assembler of the first of these calls
 * runs it. */
void hooks_waits_resolve(void);

/* Includes the list without types, because the registers are passed on unchanged. */
#define HOOKED(...)
#define HOOKED_WAIT(number, call, version, result, name, parameters)                               \
    ARCH_DEFINE_FORWARD(first_##name, hooks_waits_resolve, hooks_waits_next, PLACE_##name)         \
    ARCH_DEFINE_WATCHED_FORWARD(name, capture, offsetof(struct capture, want_helper),              \
                                capture_offer_helper, hooks_waits_next, PLACE_##name)
#include "hooked.def"

/* Holds the next functions. Several threads may resolve them at once, and store the same
 * addresses. */
IN_FIRST_PAGE void (*hooks_waits_next[])(void) = {
#define HOOKED(...)
#define HOOKED_WAIT(number, call, version, result, name, parameters) [PLACE_##name] = first_##name,
#include "hooked.def"
};

__attribute__((used)) void hooks_waits_resolve(void) {
    struct symbol symbols[CALLS] = {
#define HOOKED(...)
#define HOOKED_WAIT(number, call, version, result, symbol, parameters)                             \
    [PLACE_##symbol] = {.name = #symbol},
#include "hooked.def"
    };
    _Static_assert(sizeof hooks_waits_next == CALLS * sizeof symbols->address, "a place for each");
    const int saved = errno;
    next_symbols(symbols, CALLS);
    for (size_t i = 0; i < CALLS; i++)
        if (symbols[i].address)
            __atomic_store_n((void **)(void *)&hooks_waits_next[i], symbols[i].address,
                             __ATOMIC_RELAXED);
    errno = saved;
}
