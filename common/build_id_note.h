/* The GNU build id among the notes of an ELF object, wherever they were read from: a segment in
 * memory or a section of a file. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_BUILD_ID_NOTE_H
#define OTELPROF_BUILD_ID_NOTE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MAX_BUILD_ID_BYTES = 64 }; /* linkers write 8, 16 or 20 */

/* Where a note's part of that size ends: all are padded to four bytes. */
static inline uint64_t note_padded(uint64_t size) {
    return (size + 3) & ~UINT64_C(3);
}

/* Points into `notes`; NULL: there is none, or the notes do not fit into `size`. */
static inline const uint8_t *build_id_note(const void *notes, size_t size, uint32_t *id_size) {
    const uint8_t *const bytes = notes;
    Elf64_Nhdr note;
    for (uint64_t at = 0; at < size && size - at >= sizeof note;) {
        memcpy(&note, bytes + at, sizeof note);
        const uint64_t name = at + sizeof note;
        const uint64_t descriptor = name + note_padded(note.n_namesz);
        const uint64_t next = descriptor + note_padded(note.n_descsz);
        if (next > size)
            return NULL;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(bytes + name, "GNU", 4) == 0 && note.n_descsz > 0 &&
            note.n_descsz <= MAX_BUILD_ID_BYTES) {
            *id_size = note.n_descsz;
            return bytes + descriptor;
        }
        at = next;
    }
    return NULL;
}

#endif
