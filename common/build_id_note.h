/* Finds a note, or the GNU build id, among the notes of an ELF object. The notes may come from a
 * segment in memory or a section of a file. Context: any. Async-signal-safe: yes. */
#ifndef OTELPROF_BUILD_ID_NOTE_H
#define OTELPROF_BUILD_ID_NOTE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MAX_BUILD_ID_BYTES = 64 }; /* linkers write 8, 16 or 20 */

/* Returns the end of a note's part of that size: all parts are padded to four bytes. */
static inline uint64_t note_padded(uint64_t size) {
    return (size + 3) & ~UINT64_C(3);
}

/* Returns the contents of the note of that `type` and `owner` (a name of three letters, padded if
 * shorter), as a pointer into `notes`, and stores their size. NULL: there is none, or the notes do
 * not fit into `size`; nothing is stored. */
static inline const uint8_t *note_find(const void *notes, size_t size, const char owner[static 4],
                                       uint32_t type, uint32_t *found_size) {
    const uint8_t *const bytes = notes;
    Elf64_Nhdr note;
    for (uint64_t at = 0; at < size && size - at >= sizeof note;) {
        memcpy(&note, bytes + at, sizeof note);
        const uint64_t name = at + sizeof note;
        const uint64_t descriptor = name + note_padded(note.n_namesz);
        const uint64_t next = descriptor + note_padded(note.n_descsz);
        if (next > size)
            return NULL;
        if (note.n_type == type && note.n_namesz == 4 && memcmp(bytes + name, owner, 4) == 0) {
            *found_size = note.n_descsz;
            return bytes + descriptor;
        }
        at = next;
    }
    return NULL;
}

/* Returns the build id among the notes, and stores its size. NULL: there is none, or it is empty or
 * longer than any linker writes; nothing is stored. */
static inline const uint8_t *build_id_note(const void *notes, size_t size, uint32_t *id_size) {
    uint32_t found_size = 0;
    const uint8_t *const id = note_find(notes, size, "GNU", NT_GNU_BUILD_ID, &found_size);
    if (found_size == 0 || found_size > MAX_BUILD_ID_BYTES)
        return NULL;
    *id_size = found_size;
    return id;
}

#endif
