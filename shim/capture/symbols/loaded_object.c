#include "loaded_object.h"
#include "next_symbol.h"

#include <string.h>

loaded_object_find *loaded_object_finder(void) {
    void *const symbol = next_symbol("_dl_find_object");
    loaded_object_find *find;
    memcpy(&find, &symbol, sizeof find);
    return find;
}
