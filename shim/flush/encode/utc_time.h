/* Computes a moment's date and time of day in UTC, and as text: RFC 3339.
 *
 * Avoids gmtime_r() and strftime(), because they take libc's lock of time zones: if another thread
 * forked at that moment, the lock would be held in the child for ever, and block the program's own
 * calls. Context: any. Async-signal-safe: yes, except for the text (snprintf).
 */
#ifndef OTELPROF_UTC_TIME_H
#define OTELPROF_UTC_TIME_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { UTC_TIME_BYTES = 32 };

static inline unsigned days_of_year(unsigned year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 366 : 365;
}

static inline unsigned days_of_month(unsigned year, unsigned month) {
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 1 ? days_of_year(year) - 337 : days[month];
}

/* Returns the UTC date and time `seconds` after 1970-01-01: 32 bits suffice until 2106. */
static inline struct tm utc_fields(uint32_t seconds) {
    uint32_t days = seconds / 86400;
    const uint32_t rest = seconds % 86400;
    unsigned year = 1970;
    unsigned month = 0;
    for (; days >= days_of_year(year); year++)
        days -= days_of_year(year);
    const unsigned day_of_year = days;
    for (; days >= days_of_month(year, month); month++)
        days -= days_of_month(year, month);
    return (struct tm){.tm_sec = (int)(rest % 60),
                       .tm_min = (int)(rest / 60 % 60),
                       .tm_hour = (int)(rest / 3600),
                       .tm_mday = (int)days + 1,
                       .tm_mon = (int)month,
                       .tm_year = (int)year - 1900,
                       .tm_wday = (int)((seconds / 86400 + 4) % 7), /* 1970-01-01 was a Thursday */
                       .tm_yday = (int)day_of_year};
}

static inline void utc_time(uint32_t seconds, char text[UTC_TIME_BYTES]) {
    const struct tm t = utc_fields(seconds);
    /* computes remainders, which show the compiler how much room the numbers take */
    snprintf(text, UTC_TIME_BYTES, "%04u-%02u-%02uT%02u:%02u:%02uZ",
             (unsigned)(t.tm_year + 1900) % 10000, (unsigned)(t.tm_mon + 1) % 100,
             (unsigned)t.tm_mday % 100, (unsigned)t.tm_hour % 100, (unsigned)t.tm_min % 100,
             (unsigned)t.tm_sec % 100);
}

#endif
