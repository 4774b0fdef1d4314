#include "slow_unwind.h"

#include "memory_pages.h"

#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

/* Searches a binary table in the format of .eh_frame_hdr. libunwind's generic library exports this
 * function for its own accessors of remote processes; no header declares it. */
#define search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
int search_unwind_table(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t *info,
                        unw_proc_info_t *procedure, int need_unwind_info, void *arg);

enum { MAX_STEPS = 2048, TABLE_ENTRY_WORDS = 2 };

struct slow_unwinder {
    const struct harvest_module *modules;
    size_t module_count;
    unw_addr_space_t space;
    struct memory_pages *pages;
    const struct stack_copy *copy;
};

/* --- memory --- */

static bool read_word(const struct slow_unwinder *u, uint64_t address, void *word, size_t size) {
    const uint64_t start = u->copy->registers[REGISTER_SP];
    if (address >= start && address - start < u->copy->size &&
        u->copy->size - (address - start) >= size) {
        memcpy(word, u->copy->bytes + (address - start), size);
        return true;
    }
    return memory_pages_read(u->pages, address, word, size);
}

static const struct harvest_module *module_of(const struct slow_unwinder *u, uint64_t address) {
    for (size_t i = 0; i < u->module_count; i++) {
        const struct harvest_module *const module = &u->modules[i];
        if (address >= module->start && address < module->end && !module->unloaded)
            return module;
    }
    return NULL;
}

/* Reads the stack from the copy alone, because live stack memory has changed since. All other
 * memory is read from modules only. */
static int access_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write,
                         void *arg) {
    struct slow_unwinder *const u = arg;
    const uint64_t start = u->copy->registers[REGISTER_SP];
    (void)space;
    const bool in_copy = address >= start && address - start < u->copy->size;
    if (write || (!in_copy && !module_of(u, address)))
        return -UNW_EINVAL;
    return read_word(u, address, value, sizeof *value) ? 0 : -UNW_EINVAL;
}

static int access_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value,
                           int write, void *arg) {
    const struct slow_unwinder *const u = arg;
    (void)space;
    if (write || number < 0 || number >= REGISTER_COUNT)
        return -UNW_EBADREG;
    *value = u->copy->registers[number]; /* libunwind uses DWARF's numbers */
    return 0;
}

/* --- procedures --- */

/* Describes the table behind the header of .eh_frame_hdr: a version byte, three encodings, the
 * pointer to .eh_frame and the count, both 4 bytes in linkers' output. Returns false if the header
 * has another form, or cannot be read. */
static bool describe_table(const struct slow_unwinder *u, const struct harvest_module *module,
                           unw_dyn_info_t *info) {
    uint8_t head[12];
    for (size_t i = 0; i < sizeof head; i += 4)
        if (!read_word(u, module->eh_frame_hdr + i, head + i, 4))
            return false;
    uint32_t count;
    memcpy(&count, head + 8, sizeof count);
    if (head[0] != 1 || head[2] != 0x03 || head[3] != 0x3b)
        return false;
    *info = (unw_dyn_info_t){
        .start_ip = module->start, .end_ip = module->end, .format = UNW_INFO_FORMAT_REMOTE_TABLE};
    info->u.rti.segbase = module->eh_frame_hdr;
    info->u.rti.table_data = module->eh_frame_hdr + sizeof head;
    info->u.rti.table_len = count * (TABLE_ENTRY_WORDS * sizeof(uint32_t) / sizeof(unw_word_t));
    return true;
}

static int find_procedure(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *procedure,
                          int need_unwind_info, void *arg) {
    struct slow_unwinder *const u = arg;
    const struct harvest_module *const module = module_of(u, ip);
    unw_dyn_info_t info;
    if (!module || !module->eh_frame_hdr || !describe_table(u, module, &info))
        return -UNW_ENOINFO;
    return search_unwind_table(space, ip, &info, procedure, need_unwind_info, arg);
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

static int no_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg) {
    (void)space;
    (void)cursor;
    (void)arg;
    return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t space, unw_word_t address, char *name, size_t size,
                   unw_word_t *offset, void *arg) {
    (void)space;
    (void)address;
    (void)name;
    (void)size;
    (void)offset;
    (void)arg;
    return -UNW_ENOINFO;
}

/* --- walking --- */

struct slow_unwinder *slow_unwinder_open(const struct harvest_module *modules, size_t count) {
    unw_accessors_t accessors = {.find_proc_info = find_procedure,
                                 .put_unwind_info = put_procedure,
                                 .get_dyn_info_list_addr = no_dynamic_list,
                                 .access_mem = access_memory,
                                 .access_reg = access_register,
                                 .access_fpreg = no_float_register,
                                 .resume = no_resume,
                                 .get_proc_name = no_name};
    struct slow_unwinder *const u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->modules = modules;
    u->module_count = count;
    u->pages = memory_pages_open();
    u->space = u->pages ? unw_create_addr_space(&accessors, 0) : NULL;
    if (u->space)
        return u;
    slow_unwinder_close(u);
    return NULL;
}

void slow_unwinder_close(struct slow_unwinder *u) {
    if (!u)
        return;
    if (u->space)
        unw_destroy_addr_space(u->space);
    memory_pages_close(u->pages);
    free(u);
}

bool slow_unwind(struct slow_unwinder *u, const struct stack_copy *copy, uint64_t *frames,
                 uint64_t *stack_pointers, uint32_t max, uint32_t *count) {
    unw_cursor_t cursor;
    bool exact = true; /* true for the leaf, and for frames that a signal interrupted */
    *count = 0;
    u->copy = copy;
    if (unw_init_remote(&cursor, u->space, u) != 0)
        return false;
    for (int steps = 0; steps < MAX_STEPS && *count < max; steps++) {
        unw_word_t ip;
        unw_word_t sp;
        unw_proc_info_t procedure;
        if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0 ||
            unw_get_reg(&cursor, UNW_REG_SP, &sp) != 0)
            return false;
        if (ip == 0)
            return true;
        const uint64_t pc = exact ? ip : ip - 1;
        stack_pointers[*count] = sp;
        frames[(*count)++] = pc;
        /* If a module has no unwind information, libunwind guesses a caller from the frame pointer,
         * even if that register holds another value. The guess is used only for code outside of
         * modules (JIT), for which there is no other way. */
        if (module_of(u, pc) && find_procedure(u->space, pc, &procedure, 0, u) != 0)
            return false;
        const int step = unw_step(&cursor);
        if (step <= 0)
            return step == 0;
        /* the frame after a signal's trampoline is exact */
        exact = unw_is_signal_frame(&cursor) > 0;
    }
    return false;
}
