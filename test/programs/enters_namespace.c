/* Enters a namespace that only a process with one thread may enter, and works after that.
 *
 * usage: enters_namespace UNSHARED_MS [user|cancelled|number|mount|time [BEFORE_MS]]
 *
 * user: a new user namespace; cancelled: while the thread is to be cancelled at its next
 * cancellation point, which the call is not; number: by syscall(); mount: its own mount namespace,
 * again; time: a new time namespace. Before that the program works for BEFORE_MS. Prints the error
 * of the call, or "alone". */
#define _GNU_SOURCE
#include "cpu_sample.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NEW_TIME = 0x80 }; /* CLONE_NEWTIME of Linux 5.6 */

NOIPA static void burns_in_namespace(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
    TAKE_CPU_SAMPLE();
}

static int enter(const char *how) {
    if (strcmp(how, "mount") == 0)
        return setns(open("/proc/self/ns/mnt", O_RDONLY), CLONE_NEWNS);
    if (strcmp(how, "time") == 0)
        return unshare(NEW_TIME) != 0
                   ? -1
                   : setns(open("/proc/self/ns/time_for_children", O_RDONLY), NEW_TIME);
    if (strcmp(how, "number") == 0)
        return (int)syscall(SYS_unshare, CLONE_NEWUSER);
    if (strcmp(how, "cancelled") == 0)
        pthread_cancel(pthread_self());
    const int result = unshare(CLONE_NEWUSER);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return result;
}

NOIPA static void burns_before(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
    TAKE_CPU_SAMPLE();
}

int main(int argc, char **argv) {
    burns_before(argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
    puts(enter(argc > 2 ? argv[2] : "user") == 0 ? "alone" : strerror(errno));
    burns_in_namespace(argc > 1 ? strtoull(argv[1], NULL, 10) : 400);
    return 0;
}
