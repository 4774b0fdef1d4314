/* Replaces the kernel's system calls by a function of the test: all code that is linked to the test
 * calls this syscall() in place of libc's. */
#ifndef OTELPROF_TEST_FAKE_SYSCALL_H
#define OTELPROF_TEST_FAKE_SYSCALL_H

#include "bare_syscall.h"

#include <errno.h>
#include <stdarg.h>

/* Acts as the system call `number`; each test defines this function. Returns -1 and sets errno on
 * failure. */
static long fake_syscall(long number, const long a[6]);

/* Makes the call to the kernel, for calls that the test does not replace. */
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
