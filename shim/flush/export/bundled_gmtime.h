/* Replaces libc's gmtime_r() in the bundle, at link time: libc's takes the time zone lock
 * (encode/utc_time.h) and reads /etc/localtime. Mbed TLS compares the dates of certificates with
 * the present. Context: flush. */
#ifndef OTELPROF_BUNDLED_GMTIME_H
#define OTELPROF_BUNDLED_GMTIME_H

#include <time.h>

/* Works as gmtime_r() from 1970 until 2106; returns NULL for other times. */
struct tm *bundled_gmtime_r(const time_t *seconds, struct tm *fields);

#endif
