// flags: -lcurl
/* Is a library that gives libcurl an allocator, for programs that load it late: see own_libcurl.h,
 * whose main is use_libcurl() here. */
#define main use_libcurl
#include "own_libcurl.h"

static init_mem *find_init_mem(void) {
    return curl_global_init_mem;
}
