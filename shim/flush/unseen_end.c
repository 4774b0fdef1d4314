#include "unseen_end.h"

#include "build_id_note.h"
#include "object_segments.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

enum { NT_GO_BUILD_ID = 4 }; /* cmd/internal/buildid of Go's sources, by the name "Go" */

/* The executable's, as the kernel passes them. None: it has no PT_PHDR, which would say where it
 * lies. */
static struct object_segments executable(void) {
    const uintptr_t headers = getauxval(AT_PHDR);
    struct object_segments object = {(const ElfW(Phdr) *)headers, (uint32_t)getauxval(AT_PHNUM), 0};
    for (uint32_t i = 0; headers && i < object.count && object.count <= MAX_OBJECT_SEGMENTS; i++) {
        object.bias = headers - object.headers[i].p_vaddr;
        if (object.headers[i].p_type == PT_PHDR)
            return object;
    }
    return (struct object_segments){NULL, 0, 0};
}

static bool is_from_go(const struct object_segments *object, const ElfW(Phdr) * notes) {
    const uintptr_t address = object->bias + notes->p_vaddr;
    uint32_t size;
    return object_is_readable(object, address, notes->p_memsz) &&
           note_find((const void *)address, notes->p_memsz, "Go\0", NT_GO_BUILD_ID, &size);
}

bool unseen_end_is_to_come(void) {
    const struct object_segments object = executable();
    for (uint32_t i = 0; i < object.count; i++)
        if (object.headers[i].p_type == PT_NOTE && is_from_go(&object, &object.headers[i]))
            return true;
    return false;
}
