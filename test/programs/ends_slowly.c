/* Works on a thread that no signal of ours can reach, and ends; behind slow_clock.so it ends
 * slowly. Prints the nanoseconds that the thread has used.
 */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

BURNER(works, 100)

int main(void) {
    static char room[2048]; /* too small for any signal's frame */
    const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    if (sigaltstack(&stack, NULL) != 0)
        return 1;
    works();
    printf("%llu\n", (unsigned long long)cpu_now());
    _Atomic int *const main_ends = dlsym(RTLD_DEFAULT, "main_ends");
    if (main_ends)
        atomic_store(main_ends, 1);
    return 0;
}
