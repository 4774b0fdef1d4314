/* gmtime_r() for what is linked into the bundle: the linker has it in the place of libc's, which
 * takes the lock of time zones (utc_time.h) and reads /etc/localtime. Mbed TLS compares the dates
 * of certificates with the present. Context: flush. */
#ifndef OTELPROF_BUNDLED_GMTIME_H
#define OTELPROF_BUNDLED_GMTIME_H

#include <time.h>

/* As gmtime_r(), from 1970 until 2106; NULL at other times. */
struct tm *bundled_gmtime_r(const time_t *seconds, struct tm *fields);

#endif
