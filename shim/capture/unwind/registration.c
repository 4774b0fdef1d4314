#include "registration.h"

#include <string.h>

enum { NO_ENCODING = 0x50 }; /* DW_EH_PE_aligned, which read_pointer() does not support */

/* --- copying --- */

/* Returns true if the entry's CIE is not the one of `*last`, and stores it there. The address of
 * its instructions identifies a CIE. */
static bool is_other_cie(const struct fde *fde, uintptr_t *last) {
    const bool other = fde->cie.instructions.at != *last;
    *last = fde->cie.instructions.at;
    return other;
}

static uint32_t instructions_size(const struct reader *instructions) {
    return (uint32_t)(instructions->end - instructions->at);
}

static uint32_t more_places(const struct registration *r, const struct fde *fde) {
    const uintptr_t pages =
        ((fde->pc_end - 1) >> registered_shift(0)) - (fde->pc_start >> registered_shift(0)) + 1;
    return pages > REGISTERED_PLACES_MOST - r->place_room ? REGISTERED_PLACES_MOST
                                                          : r->place_room + (uint32_t)pages;
}

bool registration_measure(struct registered_section section, struct registration *r,
                          uintptr_t *first) {
    struct fde fde;
    uintptr_t cie = 0;
    while (registered_section_next(&section, &fde)) {
        if (r->function_count == REGISTERED_FUNCTIONS_MOST)
            return false;
        if (r->function_count == 0)
            *first = fde.pc_start;
        if (is_other_cie(&fde, &cie)) {
            r->cie_count++;
            r->byte_count += instructions_size(&fde.cie.instructions);
        }
        r->function_count++;
        r->place_room = more_places(r, &fde);
        r->byte_count += instructions_size(&fde.instructions);
    }
    return r->function_count > 0;
}

static struct registration *registration_make_room(struct table_blocks *blocks,
                                                   const struct registration *counts) {
    const size_t places = counts->place_room * sizeof(struct registered_place);
    const size_t cies = counts->cie_count * sizeof(struct cie);
    const size_t functions = counts->function_count * sizeof(struct registered_function);
    const size_t size = sizeof *counts + places + cies + functions + counts->byte_count;
    struct registration *const r = table_blocks_take(blocks, size);
    if (!r)
        return NULL;
    *r = *counts;
    r->size = size;
    r->places = (struct registered_place *)(r + 1);
    r->cies = (struct cie *)(r->places + counts->place_room);
    r->functions = (struct registered_function *)(r->cies + counts->cie_count);
    r->bytes = (uint8_t *)(r->functions + counts->function_count);
    return r;
}

/* Counts the room that the copy has used so far. */
struct filled {
    uint32_t cies;
    uint32_t functions;
    uint32_t bytes;
};

/* Copies bytes into the registration. Returns false if the section now has more bytes than were
 * measured. */
static bool copy_bytes(struct registration *r, struct filled *filled, const struct reader *from) {
    const uint32_t size = instructions_size(from);
    if (size > r->byte_count - filled->bytes)
        return false;
    memcpy(r->bytes + filled->bytes, (const void *)from->at, size);
    filled->bytes += size;
    return true;
}

static bool copy_cie(struct registration *r, struct filled *filled, const struct cie *cie) {
    if (filled->cies == r->cie_count)
        return false;
    struct cie *const copy = &r->cies[filled->cies++];
    const uintptr_t start = (uintptr_t)r->bytes + filled->bytes;
    *copy = *cie;
    copy->instructions =
        (struct reader){start, start + instructions_size(&cie->instructions), false};
    /* operands of DW_CFA_set_loc are relative to the original */
    if (cie->pointer_encoding & ENCODING_BASE)
        copy->pointer_encoding = NO_ENCODING;
    return copy_bytes(r, filled, &cie->instructions);
}

static bool copy_function(struct registration *r, struct filled *filled, const struct fde *fde) {
    if (filled->functions == r->function_count)
        return false;
    r->functions[filled->functions++] =
        (struct registered_function){.start = fde->pc_start,
                                     .size = (uint32_t)(fde->pc_end - fde->pc_start),
                                     .cie = filled->cies - 1,
                                     .instructions = filled->bytes,
                                     .instruction_bytes = instructions_size(&fde->instructions)};
    return copy_bytes(r, filled, &fde->instructions);
}

/* Copies the functions that were measured. If another thread has changed the section since, copies
 * as many as fit. */
static void registration_copy_functions(struct registered_section section, struct registration *r) {
    struct filled filled = {0, 0, 0};
    struct fde fde;
    uintptr_t cie = 0;
    while (registered_section_next(&section, &fde)) {
        if (is_other_cie(&fde, &cie) && !copy_cie(r, &filled, &fde.cie))
            break;
        if (!copy_function(r, &filled, &fde))
            break;
    }
    r->function_count = filled.functions;
}

/* --- sorting --- */

static void registration_restore_heap(struct registered_function *functions, uint32_t root,
                                      uint32_t count) {
    const struct registered_function moved = functions[root];
    for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && functions[child + 1].start > functions[child].start)
            child++;
        if (functions[child].start <= moved.start)
            break;
        functions[root] = functions[child];
        root = child;
    }
    functions[root] = moved;
}

/* Sorts by heap sort, in place; most compilers write the functions sorted. */
static void registration_sort(struct registered_function *functions, uint32_t count) {
    uint32_t sorted = 1;
    while (sorted < count && functions[sorted - 1].start <= functions[sorted].start)
        sorted++;
    if (sorted >= count)
        return;
    for (uint32_t i = count / 2; i-- > 0;)
        registration_restore_heap(functions, i, count);
    for (uint32_t end = count - 1; end > 0; end--) {
        const struct registered_function last = functions[end];
        functions[end] = functions[0];
        functions[0] = last;
        registration_restore_heap(functions, 0, end);
    }
}

/* --- pages of a registration --- */

/* Lists each page of the sorted functions, and returns their number. If there is no room for all
 * pages, returns a number beyond `place_room`. */
static uint32_t list_pages(const struct registration *r, unsigned level) {
    uint32_t count = 0;
    uintptr_t last = UINTPTR_MAX;
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct registered_function *const f = &r->functions[i];
        const uintptr_t end = (f->start + f->size - 1) >> registered_shift(level);
        for (uintptr_t page = f->start >> registered_shift(level); page <= end; page++) {
            if (last != UINTPTR_MAX && page <= last)
                continue;
            if (count == r->place_room)
                return count + 1;
            r->places[count++].page = page * REGISTERED_LEVELS + level;
            last = page;
        }
    }
    return count;
}

/* Chooses the smallest page size that needs few pages. Returns false if the functions are too far
 * apart. */
static bool choose_pages(struct registration *r) {
    for (unsigned level = 0; level < REGISTERED_LEVELS; level++) {
        r->level = level;
        r->place_count = list_pages(r, level);
        if (r->place_count <= r->place_room)
            return true;
    }
    return false;
}

struct registration *registration_copy(struct table_blocks *blocks,
                                       const struct registered_section *section,
                                       const struct registration *counts) {
    struct registration *const r = registration_make_room(blocks, counts);
    if (!r)
        return NULL;
    registration_copy_functions(*section, r);
    registration_sort(r->functions, r->function_count);
    if (r->function_count > 0 && choose_pages(r))
        return r;
    table_blocks_give(blocks, r, r->size);
    return NULL;
}

/* --- lookup --- */

const struct registered_function *registration_function_at(const struct registration *r,
                                                           uintptr_t pc) {
    uint32_t low = 0;
    uint32_t high = r->function_count;
    while (low < high) { /* searches the first function that starts beyond pc */
        const uint32_t middle = (low + high) / 2;
        if (r->functions[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || pc - r->functions[low - 1].start >= r->functions[low - 1].size)
        return NULL;
    return &r->functions[low - 1];
}

struct rule registration_rule(const struct registration *r, const struct registered_function *f,
                              uintptr_t pc) {
    const uintptr_t start = (uintptr_t)r->bytes;
    const uintptr_t at = start + f->instructions;
    const struct cfi_tables tables = {.start = start, .end = start + r->byte_count};
    const struct fde fde = {.pc_start = f->start,
                            .pc_end = f->start + f->size,
                            .cie = r->cies[f->cie],
                            .instructions = {at, at + f->instruction_bytes, false}};
    struct rule rule = cfi_entry_rule(&tables, &fde, pc);
    if (rule.cfa_kind == RULE_EXPRESSION)
        rule = (struct rule){.cfa_kind = RULE_NONE};
    return rule;
}
