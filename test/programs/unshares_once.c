/* Requests a user namespace at once, which only a process of one thread may have. */
#define _GNU_SOURCE
#include <sched.h>

int main(void) {
    return unshare(CLONE_NEWUSER) != 0;
}
