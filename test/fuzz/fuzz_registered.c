/* Fuzzes unwind tables that a JIT compiler registers. Whatever bytes are there, nothing behind
 * readable memory is read, and a copy of the tables means the same.
 *
 * Input: a byte, whose lowest bit decides whether bytes behind the table can be read; then
 * .eh_frame, up to the end of a page. */
#include "fuzz.h"
#include "unwind/registration.h"

#include <sys/mman.h>

enum { PAGE = 4096, READABLE = 16 * PAGE };

static uint8_t *room(void) {
    static uint8_t *memory;
    if (memory)
        return memory;
    memory =
        mmap(NULL, READABLE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    promise(memory != MAP_FAILED && mprotect(memory + READABLE, PAGE, PROT_NONE) == 0);
    return memory;
}

static uint32_t count_entries(struct registered_section section) {
    struct fde fde;
    uint32_t count = 0;
    while (registered_section_next(&section, &fde)) {
        promise(fde.pc_end > fde.pc_start && fde.pc_end - fde.pc_start <= UINT32_MAX);
        promise(fde.instructions.at <= fde.instructions.end);
        count++;
    }
    return count;
}

static void look_up(const struct registration *r, uintptr_t pc) {
    const struct registered_function *const function = registration_function_at(r, pc);
    if (!function)
        return;
    promise(pc - function->start < function->size);
    const struct rule rule = registration_rule(r, function, pc);
    promise(rule.cfa_kind != RULE_EXPRESSION && rule.fp_kind <= FP_LOST && !rule.after_call);
}

static void look_up_all(const struct registration *r) {
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct registered_function *const function = &r->functions[i];
        promise(i == 0 || r->functions[i - 1].start <= function->start);
        look_up(r, function->start);
        look_up(r, function->start + function->size / 2);
        look_up(r, function->start + function->size - 1);
        look_up(r, function->start + function->size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct table_blocks blocks;
    struct input input = {data, size};
    const size_t behind = take_byte(&input) & 1 ? PAGE : 0;
    uint8_t *const bytes = take_rest(&input, &size);
    size = size > READABLE - PAGE ? READABLE - PAGE : size;
    uint8_t *const place = room() + READABLE - behind - size;
    memset(room() + READABLE - behind, 0, behind);
    memcpy(place, bytes, size);
    free(bytes);

    const struct registered_section section = registered_section_at((uintptr_t)place, 0);
    struct registration counts = {.begin = (uintptr_t)place};
    uintptr_t first;
    const uint32_t count = count_entries(section);
    const bool describes = registration_measure(section, &counts, &first);
    promise(describes == (count > 0) && counts.function_count == count);
    struct registration *const copy =
        describes ? registration_copy(&blocks, &section, &counts) : NULL;
    if (copy) {
        promise(copy->function_count == count && copy->place_count > 0);
        look_up_all(copy);
        table_blocks_give(&blocks, copy, copy->size);
    }
    return 0;
}
