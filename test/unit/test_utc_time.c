/* Compares the date of a moment with libc's. */
#include "unit.h"

#include "flush/encode/utc_time.h"
#include "flush/export/bundled_gmtime.h"

#include <time.h>

static void assert_as_libc(uint32_t seconds) {
    const time_t moment = seconds;
    struct tm utc;
    char ours[UTC_TIME_BYTES];
    char theirs[UTC_TIME_BYTES];
    assert_non_null(gmtime_r(&moment, &utc));
    assert_true(strftime(theirs, sizeof theirs, "%Y-%m-%dT%H:%M:%SZ", &utc) > 0);
    utc_time(seconds, ours);
    assert_string_equal(ours, theirs);
    struct tm bundled;
    assert_ptr_equal(bundled_gmtime_r(&moment, &bundled), &bundled);
    assert_int_equal(bundled.tm_wday, utc.tm_wday);
    assert_int_equal(bundled.tm_yday, utc.tm_yday);
    assert_int_equal(timegm(&bundled), moment);
}

static void years_out_of_range_are_refused(void **state) {
    (void)state;
    struct tm fields;
    assert_null(bundled_gmtime_r(&(time_t){-1}, &fields));
    assert_null(bundled_gmtime_r(&(time_t){(time_t)UINT32_MAX + 1}, &fields));
}

static void dates_are_those_of_libc(void **state) {
    (void)state;
    for (uint32_t day = 0; day < UINT32_MAX / 86400; day++) {
        assert_as_libc(day * 86400);
        assert_as_libc(day * 86400 + 86399);
    }
    assert_as_libc(UINT32_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(dates_are_those_of_libc),
                                       cmocka_unit_test(years_out_of_range_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
