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

static bool http_find_all_functions(void *library, struct http_library *found) {
    bool all = true;
#define HTTP_FUNCTION(name) all = all && http_find_function(library, "MHD_" #name, &found->name);
#include "http_library.def"
#undef HTTP_FUNCTION
    return all;
}

/* The panic handler is one setting per copy of the library. If the program has loaded the library
 * itself, its handler must not be replaced. */
static bool program_has_library(void) {
    return dlopen(HTTP_LIBRARY_NAME, RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

const struct http_library *http_library(void) {
    static struct http_library found;
    static bool is_found;
    if (is_found)
        return &found;
    if (program_has_library())
        return NULL;
    void *const library = dlopen(HTTP_LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
    is_found = library && http_find_all_functions(library, &found);
    return is_found ? &found : NULL;
}

#endif
