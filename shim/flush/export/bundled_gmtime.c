#include "bundled_gmtime.h"

#include "encode/utc_time.h"

#include <stddef.h>

struct tm *bundled_gmtime_r(const time_t *seconds, struct tm *fields) {
    if (*seconds < 0 || *seconds > UINT32_MAX)
        return NULL;
    *fields = utc_fields((uint32_t)*seconds);
    return fields;
}
