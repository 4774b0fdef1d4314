/* Reads the unwind tables that a JIT compiler registers from the compiler's memory.
 *
 * Two kinds of address are registered: the beginning of a whole .eh_frame section, which ends with
 * a length of 0 (libgcc takes these), or one entry of a function (LLVM's libunwind does). The bytes
 * at the address distinguish the two. The length of a section is not known, and a program may
 * register any address. So the kernel is queried before a page is read, the length of an entry is
 * bounded, and unreadable memory ends the section.
 *
 * Sources: LSB 5.0 core, 10.6; libgcc's and LLVM libunwind's documentation of __register_frame.
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_REGISTERED_SECTION_H
#define OTELPROF_REGISTERED_SECTION_H

#include "cfi_entry.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    REGISTERED_ENTRY_BYTES = 1 << 20,    /* bytes of one entry: compilers write some hundreds */
    REGISTERED_SECTION_BYTES = 64 << 20, /* bytes of all entries */
};

struct registered_section {
    struct cfi_tables tables; /* range that was found to be readable */
    uintptr_t at;             /* the next entry; 0: there is none */
    bool is_entry;            /* only the entry of one function was registered */
};

/* Begins to read the section. `begin`: the registered address; `data_base`: the address that
 * DW_EH_PE_datarel is relative to, or 0. */
struct registered_section registered_section_at(uintptr_t begin, uintptr_t data_base);

/* Finds the next entry that describes code. Returns false if there is none. */
bool registered_section_next(struct registered_section *section, struct fde *fde);

#endif
