/* A moment as text: RFC 3339, in UTC.
 *
 * Not by gmtime_r() or strftime(): they take libc's lock of time zones, which a fork at that moment
 * leaves held in the child for ever, for the program's own calls, too.
 * Context: any. Async-signal-safe: no (snprintf).
 */
#ifndef OTELPROF_UTC_TIME_H
#define OTELPROF_UTC_TIME_H

#include <stdint.h>
#include <stdio.h>

enum { UTC_TIME_BYTES = 32 };

static inline unsigned days_of_year(unsigned year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 366 : 365;
}

static inline unsigned days_of_month(unsigned year, unsigned month) {
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 1 ? days_of_year(year) - 337 : days[month];
}

/* `seconds` since 1970-01-01: until 2106. */
static inline void utc_time(uint32_t seconds, char text[UTC_TIME_BYTES]) {
    uint32_t days = seconds / 86400;
    const uint32_t rest = seconds % 86400;
    unsigned year = 1970;
    unsigned month = 0;
    for (; days >= days_of_year(year); year++)
        days -= days_of_year(year);
    for (; days >= days_of_month(year, month); month++)
        days -= days_of_month(year, month);
    snprintf(text, UTC_TIME_BYTES, "%04u-%02u-%02uT%02u:%02u:%02uZ", year, month + 1, days + 1,
             rest / 3600, rest / 60 % 60, rest % 60);
}

#endif
