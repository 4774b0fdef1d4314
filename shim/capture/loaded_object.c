#include "loaded_object.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

loaded_object_find *loaded_object_finder(void) {
    void *const symbol = dlsym(RTLD_DEFAULT, "_dl_find_object");
    loaded_object_find *find;
    memcpy(&find, &symbol, sizeof find);
    return find;
}

const void *loaded_object_base(const void *address) {
    if (!libc_is_complete())
        return NULL;
    loaded_object_find *const find = loaded_object_finder();
    struct loaded_object object;
    Dl_info info;
    if (find)
        return find((void *)(uintptr_t)address, &object) == 0 ? object.map_start : NULL;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}
