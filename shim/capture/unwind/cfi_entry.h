/* Reads the entries of unwind tables: finds the frame description (FDE) of a pc, and parses its
 * fields and those of its common information (CIE). Then cfi.c executes their call frame
 * instructions.
 *
 * Sources: LSB 5.0 core, 10.6 (.eh_frame, .eh_frame_hdr); DWARF 5, 6.4.1.
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_CFI_ENTRY_H
#define OTELPROF_CFI_ENTRY_H

#include "cfi.h"
#include "cfi_reader.h"

#include <stdbool.h>
#include <stdint.h>

struct cie {
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_register;
    uint8_t pointer_encoding;
    bool has_augmentation_data;
    bool signal_frame;
    struct reader instructions;
};

struct fde {
    uintptr_t pc_start;
    uintptr_t pc_end;
    struct cie cie;
    struct reader instructions;
};

/* Reads the entry whose function starts last before `pc`, or at it; the function may end before
 * `pc`. Returns false if there is no such entry, or if it cannot be read. */
bool cfi_entry_before(const struct cfi_tables *tables, uintptr_t pc, struct fde *fde);

/* Reads the FDE at `place`. Returns false if there is no FDE, or if it cannot be read. */
bool cfi_entry_at(const struct cfi_tables *tables, uintptr_t place, struct fde *fde);

/* Returns the entry's rule for `pc`; RULE_NONE: the entry does not cover `pc`. The entry's
 * expressions may be read within `tables`. */
struct rule cfi_entry_rule(const struct cfi_tables *tables, const struct fde *fde, uintptr_t pc);

#endif
