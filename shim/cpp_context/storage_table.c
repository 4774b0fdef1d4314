#include "storage_table.h"

#include "object_segments.h"
#include "process_maps.h"
#include "readable_memory.h"
#include "storage_calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORD = sizeof(uintptr_t), MOST_BYTES = 256 << 20 };

/* --- searching --- */

struct words {
    const uintptr_t *from;
    size_t count;
};

/* Returns the words of a segment that can hold tables: it is readable, and no code. Returns none
 * for another segment. */
static struct words segment_words(const struct dl_phdr_info *object, int segment) {
    const ElfW(Phdr) *const header = &object->dlpi_phdr[segment];
    const uintptr_t start = object->dlpi_addr + header->p_vaddr;
    const uintptr_t aligned = (start + WORD - 1) & ~(uintptr_t)(WORD - 1);
    const bool has = header->p_type == PT_LOAD && header->p_flags & PF_R &&
                     !(header->p_flags & PF_X) && header->p_filesz <= MOST_BYTES &&
                     header->p_filesz >= 2 * WORD;
    const struct words none = {NULL, 0};
    return has ? (struct words){(const uintptr_t *)aligned,
                                readable_memory(aligned, start + header->p_filesz - aligned) / WORD}
               : none;
}

static bool is_code_of(const struct dl_phdr_info *object, uintptr_t address) {
    const struct object_segments segments = object_segments_of(object);
    return object_has(&segments, address, 1, PF_X);
}

/* Returns whether the word at `at` is accepted; `left`: number of words from there on. */
typedef bool is_wanted(const struct dl_phdr_info *object, const uintptr_t *at, size_t left);

/* Returns the last place where the word `wanted` is accepted; 0: there is no such place. `*count`:
 * number of such places. */
static uintptr_t search_object(const struct dl_phdr_info *object, uintptr_t wanted, is_wanted *is,
                               unsigned *count) {
    uintptr_t found = 0;
    *count = 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const struct words words = segment_words(object, i);
        for (size_t at = 1; at < words.count; at++) {
            if (words.from[at] != wanted || !is(object, &words.from[at], words.count - at))
                continue;
            found = (uintptr_t)&words.from[at];
            ++*count;
        }
    }
    return found;
}

/* Recognizes a class: the word before the pointer to its name is the address of the table of its
 * kind, which lies in an object's data. */
static bool is_class(const struct dl_phdr_info *object, const uintptr_t *name, size_t left) {
    return left > 1 && name[-1] != 0 && name[-1] % WORD == 0 && !is_code_of(object, name[-1]) &&
           name[1] != 0 && name[1] % WORD == 0;
}

static bool has_functions(const struct dl_phdr_info *object, const uintptr_t *class, size_t left) {
    if (class[-1] != 0 || left <= STORAGE_FUNCTIONS)
        return false;
    for (unsigned i = 1; i <= STORAGE_FUNCTIONS; i++)
        if (!is_code_of(object, class[i]))
            return false;
    return true;
}

uintptr_t storage_table_find(const struct dl_phdr_info *object, uintptr_t name,
                             enum cpp_outcome *outcome) {
    unsigned classes = 0;
    unsigned tables = 0;
    const uintptr_t class_name = search_object(object, name, is_class, &classes);
    const uintptr_t class =
        classes == 1 ? search_object(object, class_name - WORD, has_functions, &tables) : 0;
    *outcome = classes == 0 ? CPP_NO_CLASS : CPP_UNKNOWN_SHAPE;
    return tables == 1 ? class + WORD : 0;
}

/* --- changing --- */

struct part {
    uintptr_t start;
    uintptr_t end;
    int protection;
};

/* Returns true for the mapping around the part's start, and stores its protection; -1 if the part
 * is not private memory of this mapping alone. */
static bool is_around(void *arg, const struct process_mapping *mapping) {
    struct part *const part = arg;
    const char *const mode = mapping->rest;
    if (*mode != ' ' || part->start < mapping->start || part->start >= mapping->end)
        return false;
    part->protection = (mode[1] == 'r' ? PROT_READ : 0) | (mode[2] == 'w' ? PROT_WRITE : 0) |
                       (mode[3] == 'x' ? PROT_EXEC : 0);
    if (part->end > mapping->end || mode[4] != 'p')
        part->protection = -1;
    return true;
}

/* Returns PROT_* bits of the private memory from `start` to `end`, from /proc/PID/maps. -1: the
 * range spans several mappings, is shared with other processes, or its protection is unknown. */
static int mapping_protection(uintptr_t start, uintptr_t end) {
    struct part part = {start, end, -1};
    (void)process_maps_visit(is_around, &part);
    return part.protection;
}

bool storage_table_replace(uintptr_t table, uintptr_t get_current, uintptr_t attach,
                           uintptr_t detach) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = table + STORAGE_GET_CURRENT * WORD;
    const uintptr_t start = first & -page;
    const uintptr_t end = (table + (STORAGE_DETACH + 1) * WORD + page - 1) & -page;
    const int before = mapping_protection(start, end);
    if (before < 0 || before & PROT_EXEC || !(before & PROT_READ))
        return false;
    const bool locked = !(before & PROT_WRITE);
    if (locked && mprotect((void *)start, end - start, before | PROT_WRITE) != 0)
        return false;
    /* replaces attach last, so that every context that the hook of attach has seen is detached by
     * the hook of detach. Each store pairs with the load of the entry in the program's calls: the
     * storage is ready when a hook runs */
    _Atomic uintptr_t *const slots = (_Atomic uintptr_t *)table;
    atomic_store_explicit(&slots[STORAGE_GET_CURRENT], get_current, memory_order_release);
    atomic_store_explicit(&slots[STORAGE_DETACH], detach, memory_order_release);
    atomic_store_explicit(&slots[STORAGE_ATTACH], attach, memory_order_release);
    if (locked)
        (void)mprotect((void *)start, end - start, before);
    return true;
}
