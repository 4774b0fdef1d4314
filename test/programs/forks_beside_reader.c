/* Waits until the helper is inside of a library (stuck_reader.so), and has a profiled child, which
 * works. Prints the child's id. */
#define _GNU_SOURCE
#include "cpu_sample.h"
#include "forked.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>

SAMPLED_BURNER(parent_burns, 10)
SAMPLED_BURNER(child_burns, 40)

int main(void) {
    const _Atomic int *const stuck = dlsym(RTLD_DEFAULT, "reader_is_stuck");
    while (stuck && !atomic_load(stuck))
        parent_burns();
    const pid_t child = fork_profiled();
    if (child == 0) {
        child_burns();
        return 0;
    }
    printf("%d\n", (int)child);
    return waitpid(child, NULL, 0) != child;
}
