/* Has an unshare that takes half a second. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <string.h>
#include <time.h>

int unshare(int kinds) {
    int (*next)(int);
    void *const found = dlsym(RTLD_NEXT, "unshare");
    memcpy(&next, &found, sizeof next);
    nanosleep(&(struct timespec){0, 500000000}, NULL);
    return next(kinds);
}
