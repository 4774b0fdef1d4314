/* Has a pthread_create that makes the profiler's helper once. For the second request it takes two
 * and a half seconds to report that there can be no more threads. The program's threads have no
 * attributes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) {
    static int helpers;
    void *const found = dlsym(RTLD_NEXT, "pthread_create");
    create *next;
    memcpy(&next, &found, sizeof next);
    if (attributes && helpers++ > 0) {
        nanosleep(&(struct timespec){2, 500000000}, NULL);
        return EAGAIN;
    }
    return next(thread, attributes, start, argument);
}
