#include "unseen_end.h"

#include "go_note.h"

#include <link.h>
#include <sys/auxv.h>

/* Returns the segments of the executable, as the kernel passes them; none if there is no PT_PHDR,
 * which is needed to compute the load address. */
static struct object_segments find_executable(void) {
    const uintptr_t headers = getauxval(AT_PHDR);
    struct object_segments object = {(const ElfW(Phdr) *)headers, (uint32_t)getauxval(AT_PHNUM), 0};
    for (uint32_t i = 0; headers && i < object.count && object.count <= MAX_OBJECT_SEGMENTS; i++) {
        object.bias = headers - object.headers[i].p_vaddr;
        if (object.headers[i].p_type == PT_PHDR)
            return object;
    }
    return (struct object_segments){NULL, 0, 0};
}

bool exits_without_libc(void) {
    const struct object_segments object = find_executable();
    return object_has_go_note(&object);
}
