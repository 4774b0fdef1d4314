// flags: -lcurl
/* Is a program that finds curl_global_init_mem() by its name, which no table of its shows: see
 * own_libcurl.h. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "own_libcurl.h"

static init_mem *find_init_mem(void) {
    init_mem *init = NULL;
    *(void **)&init = dlsym(RTLD_DEFAULT, "curl_global_init_mem");
    return init;
}
