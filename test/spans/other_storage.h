/* Calls a storage of contexts again and again, until the profiler has replaced a function of its
 * class, and then some hundred times more. */
#pragma once

#include <cstdio>
#include <unistd.h>

template <typename Storage, typename Call>
int calls_until_followed(Storage *storage, Call &&is_right) {
    enum { ATTACH = 1, WAIT_MS = 30000, CALLS = 300 };
    void *const *const table = *reinterpret_cast<void *const *volatile *>(storage);
    void *const before = table[ATTACH];
    bool followed = false;
    for (int i = 0, left = CALLS; left > 0; left -= followed) {
        if (!is_right())
            return std::puts("wrong"), 1;
        followed = static_cast<void *const volatile *>(table)[ATTACH] != before;
        if (!followed && i++ == WAIT_MS)
            return std::puts("not followed"), 1;
        if (!followed)
            usleep(1000);
    }
    return std::puts("ok"), 0;
}
