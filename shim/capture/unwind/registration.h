/* Copies the unwind tables of one registration (registered_tables.h) into one block of memory: its
 * functions, sorted, with their call frame instructions. The copy is listed under pages of one of
 * four sizes: the smallest size that needs few pages.
 */
#ifndef OTELPROF_REGISTRATION_H
#define OTELPROF_REGISTRATION_H

#include "cfi_entry.h"
#include "registered_section.h"
#include "table_blocks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    REGISTERED_FUNCTIONS_MOST = 1 << 18, /* largest number of functions in one registration */
    REGISTERED_PLACES_MOST = 64,         /* largest number of pages of one registration */
    REGISTERED_LEVELS = 4,               /* sizes of pages: 4 KiB, 256 KiB, 16 MiB, 1 GiB */
};

/* Describes a function of a registration. */
struct registered_function {
    uintptr_t start;
    uint32_t size;
    uint32_t cie;
    uint32_t instructions; /* offset in the registration's bytes */
    uint32_t instruction_bytes;
};

/* Places a registration in the list of one of its pages. */
struct registered_place {
    _Atomic(struct registered_place *) next;
    uintptr_t page; /* registered_page() */
    struct registration *registration;
};

/* Holds a copy of one registration. Fields that readers use never change, except for `next` of the
 * places, and the two atomic flags. */
struct registration {
    uintptr_t begin;
    struct registration
        /* next registration in the same bucket of beginnings, or in the list of removed
         * registrations */
        *next;
    size_t size; /* size of the block */
    _Atomic bool is_removed;
    _Atomic bool is_cached; /* the rule cache may have a rule of this registration */
    uint32_t level;
    uint32_t place_room; /* at most REGISTERED_PLACES_MOST */
    uint32_t place_count;
    uint32_t cie_count;
    uint32_t function_count;
    uint32_t byte_count;
    struct registered_place *places;
    struct cie *cies; /* common information of the functions; the instructions are in `bytes` */
    struct registered_function *functions;
    uint8_t *bytes;
};

static inline unsigned registered_shift(unsigned level) {
    enum { LEAST_PAGE_SHIFT = 12, LEVEL_SHIFT = 6 };
    return LEAST_PAGE_SHIFT + level * LEVEL_SHIFT;
}

/* Returns the page of `address`; the number also holds the level. */
static inline uintptr_t registered_page(uintptr_t address, unsigned level) {
    return (address >> registered_shift(level)) * REGISTERED_LEVELS + level;
}

/* Measures a copy of the section. `first`: start of its first function. Returns false if there is
 * no function to copy, or too many. Context: any. */
bool registration_measure(struct registered_section section, struct registration *counts,
                          uintptr_t *first);

/* Copies the section into the measured room. NULL: there is no memory, the functions are too far
 * apart for a list of pages, or no function is left. Context: as table_blocks_take(). */
struct registration *registration_copy(struct table_blocks *blocks,
                                       const struct registered_section *section,
                                       const struct registration *counts);

/* Returns the function around `pc`, or NULL. Context: any. Async-signal-safe: yes. */
const struct registered_function *registration_function_at(const struct registration *registration,
                                                           uintptr_t pc);

/* Returns the registration's rule for `pc` itself (not for a call before `pc`); RULE_NONE if no
 * rule can express it. Context: any. Async-signal-safe: yes. */
struct rule registration_rule(const struct registration *registration,
                              const struct registered_function *function, uintptr_t pc);

#endif
