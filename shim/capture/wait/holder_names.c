#include "holder_names.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

enum { PLACES = 256 };

/* Holds the names by thread id. A reader checks the id before and after it copies the name. */
static struct {
    _Atomic uint32_t tid;
    _Atomic bool has_ended;
    _Atomic uint64_t name[THREAD_NAME_BYTES / 8];
} names[PLACES];

void holder_names_want(uint32_t tid) {
    const uint32_t place = tid % PLACES;
    if (!tid || atomic_load_explicit(&names[place].tid, memory_order_relaxed) == tid)
        return;
    atomic_store(&names[place].tid, 0);
    atomic_store(&names[place].has_ended, false);
    atomic_store(&names[place].tid, tid);
}

void holder_names_end(uint32_t tid) {
    const uint32_t place = tid % PLACES;
    uint64_t name[THREAD_NAME_BYTES / 8] = {0};
    if (atomic_load_explicit(&names[place].tid, memory_order_relaxed) != tid)
        return;
    prctl(PR_GET_NAME, name);
    for (size_t i = 0; i < THREAD_NAME_BYTES / 8; i++)
        atomic_store_explicit(&names[place].name[i], name[i], memory_order_relaxed);
    /* pairs with the acquire in holder_names_read() */
    atomic_store_explicit(&names[place].has_ended, true, memory_order_release);
}

bool holder_names_read(uint32_t tid, char name[static THREAD_NAME_BYTES]) {
    const uint32_t place = tid % PLACES;
    uint64_t words[THREAD_NAME_BYTES / 8];
    /* the acquire pairs with holder_names_end() */
    if (!tid || atomic_load(&names[place].tid) != tid ||
        !atomic_load_explicit(&names[place].has_ended, memory_order_acquire))
        return false;
    for (size_t i = 0; i < THREAD_NAME_BYTES / 8; i++)
        words[i] = atomic_load_explicit(&names[place].name[i], memory_order_relaxed);
    /* pairs with holder_names_want(), which replaces the id before a later holder stores its name
     */
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load(&names[place].tid) != tid)
        return false;
    memcpy(name, words, THREAD_NAME_BYTES);
    name[THREAD_NAME_BYTES - 1] = 0;
    return true;
}
