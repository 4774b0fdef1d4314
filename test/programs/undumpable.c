/* Gives up root, so that the process is not dumpable, while another thread waits for ever by a call
 * of its own, as Go's threads do. Each line of its input has it allow dumps again.
 *
 * usage: undumpable
 */
#define _GNU_SOURCE
#include "bare_call.h"

#include <grp.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { USER = 65534 };

static int word;

static void *waits_past_libc(void *unused) {
    (void)unused;
    bare_call(SYS_futex, (long)&word, FUTEX_WAIT, 0, 0, 0, 0);
    return NULL;
}

int main(void) {
    pthread_t thread;
    char line[16];
    if (setgroups(0, NULL) || setresgid(USER, USER, USER) || setresuid(USER, USER, USER) ||
        pthread_create(&thread, NULL, waits_past_libc, NULL) != 0)
        return 1;
    puts("gave up");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    return 0;
}
