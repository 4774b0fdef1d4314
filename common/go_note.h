/* Detects objects made by Go's linker, which leaves a note in each.
 *
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_GO_NOTE_H
#define OTELPROF_GO_NOTE_H

#include "build_id_note.h"
#include "object_segments.h"

/* type of the note with the name "Go": cmd/internal/buildid of Go's sources */
enum { NT_GO_BUILD_ID = 4 };

static inline bool object_has_go_note(const struct object_segments *object) {
    for (uint32_t i = 0; i < object->count; i++) {
        const ElfW(Phdr) *const notes = &object->headers[i];
        const uintptr_t address = object->bias + notes->p_vaddr;
        uint32_t size;
        if (notes->p_type == PT_NOTE && object_is_readable(object, address, notes->p_memsz) &&
            note_find((const void *)address, notes->p_memsz, "Go\0", NT_GO_BUILD_ID, &size))
            return true;
    }
    return false;
}

#endif
