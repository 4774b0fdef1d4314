/* Compares one step of our unwinder with one of libunwind's, at every byte of a file's code.
 *
 * usage: rules FILE [STRIDE]   (every STRIDE-th function; 1)
 * The file is mapped, not loaded: unwind information needs no relocation. Both unwinders start from
 * the same made-up registers on a made-up stack, where each word's value shows its address;
 * whatever one computes differently for the caller's pc, rsp or rbp shows. Prints one line of JSON,
 * and the first few differences; status 1 if there is any.
 */
#include "arch_code.h"
#include "unwind/cfi.h"

#include <elf.h>
#include <fcntl.h>
#include <libunwind-x86_64.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN = 10, HEAD_BYTES = 12, TABLE_ENTRY_WORDS = 2 };

static const uint64_t stack_start = UINT64_C(0x500000000000);
static const uint64_t stack_end = UINT64_C(0x500010000000);
static const uint64_t start_rsp = UINT64_C(0x500000080000);
static const uint64_t start_rbp = UINT64_C(0x500000090000);

int _Ux86_64_dwarf_search_unwind_table(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t *info,
                                       unw_proc_info_t *procedure, int need_unwind_info, void *arg);

static struct image {
    struct cfi_tables tables;
    uintptr_t bias;
    uint64_t pc; /* the pc that is compared */
} image;

static struct {
    uint64_t functions;
    uint64_t pcs;
    uint64_t equal;
    uint64_t expression; /* left to libunwind by design */
    uint64_t outermost;  /* no caller, by both */
    uint64_t none;       /* not described, by both */
    uint64_t rbp_lost;   /* among the equal: ours has no value for the caller's rbp */
    uint64_t refused;    /* refused by libunwind; ours must not have a plain rule then */
    uint64_t wrong;
} tally;

/* --- the file --- */

static void *map_file(const char *path, size_t *size) {
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0)
        return NULL;
    *size = (size_t)status.st_size;
    void *const bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    return bytes == MAP_FAILED ? NULL : bytes;
}

static bool place_segments(const uint8_t *bytes) {
    const ElfW(Ehdr) *const header = (const void *)bytes;
    const ElfW(Phdr) *const segments = (const void *)(bytes + header->e_phoff);
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type != PT_LOAD)
            continue;
        low = segments[i].p_vaddr < low ? segments[i].p_vaddr : low;
        high = segments[i].p_vaddr + segments[i].p_memsz > high
                   ? segments[i].p_vaddr + segments[i].p_memsz
                   : high;
    }
    low &= ~UINT64_C(4095);
    uint8_t *const memory = mmap(NULL, high - low, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    image.bias = (uintptr_t)memory - low;
    image.tables = (struct cfi_tables){
        .start = (uintptr_t)memory, .end = (uintptr_t)memory + (high - low), .fixed = true};
    for (int i = 0; i < header->e_phnum; i++) {
        const ElfW(Phdr) *const segment = &segments[i];
        if (segment->p_type == PT_LOAD)
            memcpy((void *)(image.bias + segment->p_vaddr), bytes + segment->p_offset,
                   segment->p_filesz);
        if (segment->p_type == PT_GNU_EH_FRAME)
            image.tables.header = image.bias + segment->p_vaddr;
    }
    return image.tables.header != 0;
}

/* --- libunwind over it --- */

/* Returns a word of the stack: never 0, a multiple of 8, and different at each address. */
static uint64_t word_at(uint64_t address) {
    return stack_start + (address - stack_start) / 8 * 16 + 0x1000000;
}

static int access_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write,
                         void *arg) {
    (void)space;
    (void)arg;
    if (write)
        return -UNW_EINVAL;
    if (address >= stack_start && address < stack_end)
        *value = word_at(address);
    else if (address >= image.tables.start && address <= image.tables.end - sizeof *value)
        memcpy(value, (const void *)address, sizeof *value);
    else
        return -UNW_EINVAL;
    return 0;
}

static int access_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value,
                           int write, void *arg) {
    (void)space;
    (void)arg;
    if (write || number < 0 || number >= REGISTER_COUNT)
        return -UNW_EBADREG;
    *value = number == REGISTER_PC   ? image.pc
             : number == REGISTER_SP ? start_rsp
             : number == REGISTER_FP ? start_rbp
                                     : start_rsp + 0x1000 * (uint64_t)(number + 1);
    return 0;
}

static int find_procedure(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *procedure,
                          int need_unwind_info, void *arg) {
    unw_dyn_info_t info = {.start_ip = image.tables.start,
                           .end_ip = image.tables.end,
                           .format = UNW_INFO_FORMAT_REMOTE_TABLE};
    uint32_t count;
    memcpy(&count, (const void *)(image.tables.header + 8), sizeof count);
    info.u.rti.segbase = image.tables.header;
    info.u.rti.table_data = image.tables.header + HEAD_BYTES;
    info.u.rti.table_len = count * (TABLE_ENTRY_WORDS * sizeof(uint32_t) / sizeof(unw_word_t));
    return _Ux86_64_dwarf_search_unwind_table(space, ip, &info, procedure, need_unwind_info, arg);
}

static void put_procedure(unw_addr_space_t space, unw_proc_info_t *procedure, void *arg) {
    (void)space;
    (void)procedure;
    (void)arg;
}

static int no_dynamic_list(unw_addr_space_t space, unw_word_t *list, void *arg) {
    (void)space;
    (void)list;
    (void)arg;
    return -UNW_ENOINFO;
}

static int no_float_register(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value,
                             int write, void *arg) {
    (void)space;
    (void)number;
    (void)value;
    (void)write;
    (void)arg;
    return -UNW_EBADREG;
}

struct caller {
    int step; /* > 0: there is a caller */
    uint64_t pc;
    uint64_t rsp;
    uint64_t rbp;
};

static struct caller ask_libunwind(unw_addr_space_t space) {
    unw_cursor_t cursor;
    struct caller caller = {.step = -1};
    if (unw_init_remote(&cursor, space, &image) != 0)
        return caller;
    caller.step = unw_step(&cursor);
    (void)unw_get_reg(&cursor, UNW_X86_64_RIP, &caller.pc);
    (void)unw_get_reg(&cursor, UNW_X86_64_RSP, &caller.rsp);
    (void)unw_get_reg(&cursor, UNW_X86_64_RBP, &caller.rbp);
    return caller;
}

/* --- our rules, in the plainest form --- */

static uint64_t cfa_of(struct rule rule) {
    switch (rule.cfa_kind) {
    case RULE_SP:
        return start_rsp + (uint64_t)(int64_t)rule.cfa_offset;
    case RULE_FP:
        return start_rbp + (uint64_t)(int64_t)rule.cfa_offset;
    case RULE_AT_SP:
        return word_at(start_rsp + (uint64_t)(int64_t)rule.cfa_offset);
    case RULE_AT_SP_8:
        return word_at(start_rsp + (uint64_t)(int64_t)rule.cfa_offset) + 8;
    case RULE_AT_FP_8:
        return word_at(start_rbp + (uint64_t)(int64_t)rule.cfa_offset) + 8;
    case RULE_AT_FP_16:
        return word_at(start_rbp + (uint64_t)(int64_t)rule.cfa_offset) + 16;
    default:
        return word_at(start_rbp + (uint64_t)(int64_t)rule.cfa_offset);
    }
}

static struct caller caller_by(struct rule rule, uint64_t same_rbp) {
    if (rule.cfa_kind == RULE_SIGNAL)
        return (struct caller){1, word_at(start_rsp + SIGNAL_FRAME_PC),
                               word_at(start_rsp + SIGNAL_FRAME_SP),
                               word_at(start_rsp + SIGNAL_FRAME_FP)};
    const uint64_t cfa = cfa_of(rule);
    struct caller caller = {1, word_at(cfa - 8), cfa, same_rbp};
    if (rule.fp_kind == FP_SAME)
        caller.rbp = start_rbp;
    else if (rule.fp_kind == FP_AT_CFA)
        caller.rbp = word_at(cfa + (uint64_t)(int64_t)rule.fp_offset);
    else if (rule.fp_kind == FP_AT_FP)
        caller.rbp = word_at(start_rbp + (uint64_t)(int64_t)rule.fp_offset);
    return caller; /* FP_LOST: there is no value, so any is right */
}

static void show(struct rule rule, struct caller ours, struct caller theirs) {
    if (tally.wrong > SHOWN)
        return;
    printf(
        "# pc 0x%zx: kind %d; ours pc %zx rsp %zx rbp %zx; libunwind %d: pc %zx rsp %zx rbp %zx\n",
        (size_t)(image.pc - image.bias), rule.cfa_kind, (size_t)ours.pc, (size_t)ours.rsp,
        (size_t)ours.rbp, theirs.step, (size_t)theirs.pc, (size_t)theirs.rsp, (size_t)theirs.rbp);
}

static void compare(unw_addr_space_t space) {
    const struct rule rule = cfi_rule(&image.tables, image.pc);
    tally.pcs++;
    if (rule.cfa_kind == RULE_EXPRESSION) {
        tally.expression++;
        return;
    }
    const struct caller theirs = ask_libunwind(space);
    const bool has_caller = rule.cfa_kind >= RULE_SP || rule.cfa_kind == RULE_SIGNAL;
    if (rule.cfa_kind == RULE_END && theirs.step == 0) {
        tally.outermost++;
        return;
    }
    if (rule.cfa_kind == RULE_NONE && theirs.step < 0) {
        tally.none++;
        return;
    }
    if (has_caller && theirs.step <= 0 && cfa_of(rule) >= stack_end) {
        tally.refused++; /* a frame larger than the made-up stack */
        return;
    }
    const struct caller ours = has_caller ? caller_by(rule, theirs.rbp) : (struct caller){0};
    if (has_caller && theirs.step > 0 && ours.pc == theirs.pc && ours.rsp == theirs.rsp &&
        ours.rbp == theirs.rbp) {
        tally.equal++;
        tally.rbp_lost += rule.fp_kind == FP_LOST;
        return;
    }
    tally.wrong++;
    show(rule, ours, theirs);
}

/* --- all functions of the table --- */

static uint64_t end_of(unw_addr_space_t space, uint64_t start) {
    unw_proc_info_t procedure;
    image.pc = start;
    return find_procedure(space, start, &procedure, 0, &image) == 0 ? procedure.end_ip : start;
}

static void compare_all(unw_addr_space_t space, uint64_t stride) {
    uint32_t count;
    memcpy(&count, (const void *)(image.tables.header + 8), sizeof count);
    const int32_t *const table = (const void *)(image.tables.header + HEAD_BYTES);
    for (uint64_t i = 0; i < count; i += stride) {
        const uint64_t start = image.tables.header + (uint64_t)(int64_t)table[2 * i];
        const uint64_t end = end_of(space, start);
        tally.functions++;
        for (image.pc = start; image.pc < end; image.pc++)
            compare(space);
    }
}

int main(int argc, char **argv) {
    unw_accessors_t accessors = {.find_proc_info = find_procedure,
                                 .put_unwind_info = put_procedure,
                                 .get_dyn_info_list_addr = no_dynamic_list,
                                 .access_mem = access_memory,
                                 .access_reg = access_register,
                                 .access_fpreg = no_float_register};
    size_t size;
    const uint8_t *const bytes = argc > 1 ? map_file(argv[1], &size) : NULL;
    if (!bytes || size < sizeof(ElfW(Ehdr)) || !place_segments(bytes))
        return 2;
    const unw_addr_space_t space = unw_create_addr_space(&accessors, 0);
    compare_all(space, argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
    printf(
        "{\"file\": \"%s\", \"functions\": %zu, \"pcs\": %zu, \"equal\": %zu, \"expression\": %zu, "
        "\"outermost\": %zu, \"none\": %zu, \"rbp_lost\": %zu, \"refused\": %zu, \"wrong\": %zu}\n",
        argv[1], (size_t)tally.functions, (size_t)tally.pcs, (size_t)tally.equal,
        (size_t)tally.expression, (size_t)tally.outermost, (size_t)tally.none,
        (size_t)tally.rbp_lost, (size_t)tally.refused, (size_t)tally.wrong);
    return tally.wrong != 0;
}
