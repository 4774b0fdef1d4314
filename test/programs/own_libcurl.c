// flags: -lcurl
/* Refers to curl_global_init_mem(): see own_libcurl.h. */
#include "own_libcurl.h"

static init_mem *find_init_mem(void) {
    return curl_global_init_mem;
}
