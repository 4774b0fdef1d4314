#include "http_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#ifdef HTTP_LIBRARY_LINKED

const struct http_library *http_library(void) {
    static const struct http_library linked = {
#define HTTP_FUNCTION(name) .name = MHD_##name,
#include "http_library.def"
#undef HTTP_FUNCTION
    };
    return &linked;
}

#else

static bool http_find_function(void *library, const char *name, void *function) {
    void *const found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static struct {
    struct http_library functions;
    bool is_found;
} http;

const struct http_library *http_library(void) {
    if (http.is_found)
        return &http.functions;
    /* The panic handler is one setting for each copy of the library. If the program has loaded the
     * library itself, its handler must not be replaced. */
    if (dlopen(HTTP_LIBRARY_NAME, RTLD_LAZY | RTLD_NOLOAD))
        return NULL;
    /* the program exports libmicrohttpd's functions itself */
    if (dlsym(RTLD_DEFAULT, "MHD_start_daemon"))
        return NULL;
    void *const library = dlopen(HTTP_LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
    bool all = library != NULL;
#define HTTP_FUNCTION(name)                                                                        \
    all = all && http_find_function(library, "MHD_" #name, &http.functions.name);
#include "http_library.def"
#undef HTTP_FUNCTION
    http.is_found = all;
    return http.is_found ? &http.functions : NULL;
}

#endif
