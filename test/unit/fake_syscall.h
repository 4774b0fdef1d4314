/* A kernel of the test's own: syscall() in place of libc's, for all that is linked to the test. */
#ifndef OTELPROF_TEST_FAKE_SYSCALL_H
#define OTELPROF_TEST_FAKE_SYSCALL_H

#include "bare_syscall.h"

#include <errno.h>
#include <stdarg.h>

/* The test's: what a call does. -1 and errno where it fails. */
static long fake_syscall(long number, const long a[6]);

/* For calls that the test leaves as they are. */
static long real_syscall(long number, const long a[6]) {
    return bare_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static inline long refuse_syscall(int error) {
    errno = error;
    return -1;
}

long syscall(long number, ...);
long syscall(long number, ...) {
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    return fake_syscall(number, a);
}

#endif
