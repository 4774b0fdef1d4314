#include "deep_binding.h"

#include "arch_memory.h"
#include "arch_object.h"
#include "capture.h"
#include "kernel/signals_blocked.h"
#include "symbols/loader_state.h"
#include "symbols/next_symbol.h"
#include "symbols/object_symbols.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

struct deep_binding deep_binding;

/* One object's tables, as the loader has used them. */
struct object {
    const struct dl_phdr_info *info;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * data; /* DT_RELA: the first `relative` of them name no symbol */
    size_t data_bytes;
    size_t relative;
    const ElfW(Rela) * calls; /* DT_JMPREL */
    size_t calls_bytes;
};

static struct object object_of(const struct dl_phdr_info *info) {
    struct object object = {.info = info};
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void *const pointer = (const void *)entry->d_un.d_ptr;
        switch (entry->d_tag) {
        case DT_SYMTAB:
            object.symbols = pointer;
            break;
        case DT_STRTAB:
            object.strings = pointer;
            break;
        case DT_RELA:
            object.data = pointer;
            break;
        case DT_RELASZ:
            object.data_bytes = entry->d_un.d_val;
            break;
        case DT_RELACOUNT:
            object.relative = entry->d_un.d_val;
            break;
        case DT_JMPREL:
            object.calls = pointer;
            break;
        case DT_PLTRELSZ:
            object.calls_bytes = entry->d_un.d_val;
            break;
        }
    }
    return object;
}

/* --- where an address lies --- */

static bool is_in_segment(const struct dl_phdr_info *info, uintptr_t address, size_t size,
                          unsigned flags) {
    const uintptr_t at = address - info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & flags) == flags &&
            at >= segment->p_vaddr && segment->p_memsz >= size &&
            at - segment->p_vaddr <= segment->p_memsz - size)
            return true;
    }
    return false;
}

/* The loader makes read-only what of PT_GNU_RELRO is whole pages. */
static bool is_read_only(const struct dl_phdr_info *info, uintptr_t address) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const part = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_RELRO && address >= (start & -arch_page_bytes()) &&
            address < ((start + part->p_memsz) & -arch_page_bytes()))
            return true;
    }
    return false;
}

/* --- whose function a name stands for --- */

static uintptr_t definition_in(const struct link_map *object, const char *name) {
    const ElfW(Sym) *const symbol = object_symbols_entry(object, name);
    return symbol && symbol->st_value ? object->l_addr + symbol->st_value : 0;
}

/* Whether nobody but us and who stands behind us defines it: then a first call in any library will
 * find one of the two. Under the loader's lock. */
static bool is_defined_once(const char *name, uintptr_t next) {
    const struct link_map *const own = object_symbols_own();
    for (const struct link_map *object = object_symbols_first(); object; object = object->l_next) {
        const uintptr_t found = object == own ? 0 : definition_in(object, name);
        if (found && found != next)
            return false;
    }
    return true;
}

/* Not bound yet: the entry leads back into the library's own code. */
static bool waits_for_first_call(const struct object *object, uint32_t type, uintptr_t value) {
    return type == ARCH_RELOCATION_PLT && is_in_segment(object->info, value, 1, PF_X);
}

static bool is_ours_to_bind(const struct object *object, uint32_t type, const char *name,
                            uintptr_t value) {
    const uintptr_t next = (uintptr_t)next_symbol(name);
    if (!next)
        return false;
    return value == next ||
           (waits_for_first_call(object, type, value) && is_defined_once(name, next));
}

/* --- binding --- */

static void replace(const struct object *object, uintptr_t address, uintptr_t old, uintptr_t own) {
    void *const page = (void *)(address & -arch_page_bytes());
    const bool read_only = is_read_only(object->info, address);
    if (read_only && mprotect(page, arch_page_bytes(), PROT_READ | PROT_WRITE) != 0) {
        atomic_fetch_add(&deep_binding.refused, 1);
        return;
    }
    /* the library's threads run: a first call may be binding it, or its code have changed it */
    if (__atomic_compare_exchange_n((uintptr_t *)address, &old, own, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_RELAXED))
        atomic_fetch_add(&deep_binding.bound, 1);
    if (read_only)
        (void)mprotect(page, arch_page_bytes(), PROT_READ);
}

static bool is_of_a_function(uint32_t type) {
    return type == ARCH_RELOCATION_PLT || type == ARCH_RELOCATION_GOT ||
           type == ARCH_RELOCATION_DATA;
}

static void bind_entry(const struct object *object, const struct link_map *own,
                       const ElfW(Rela) * entry) {
    const uint32_t type = ELF64_R_TYPE(entry->r_info);
    const ElfW(Sym) *const symbol = &object->symbols[ELF64_R_SYM(entry->r_info)];
    const uintptr_t address = object->info->dlpi_addr + entry->r_offset;
    if (!is_of_a_function(type) || symbol->st_shndx != SHN_UNDEF || symbol->st_name == 0 ||
        entry->r_addend != 0 || address % sizeof(uintptr_t) != 0 ||
        !is_in_segment(object->info, address, sizeof(uintptr_t), PF_W))
        return;
    const char *const name = object->strings + symbol->st_name;
    const uintptr_t ours = definition_in(own, name);
    const uintptr_t value = __atomic_load_n((const uintptr_t *)address, __ATOMIC_RELAXED);
    if (ours && value != ours && is_ours_to_bind(object, type, name, value))
        replace(object, address, value, ours);
}

static void bind_entries(const struct object *object, const struct link_map *own,
                         const ElfW(Rela) * entries, size_t from, size_t bytes) {
    for (size_t i = from; entries && i < bytes / sizeof *entries; i++)
        bind_entry(object, own, &entries[i]);
}

/* The loader has not made addresses of the vDSO's pointers, nor of those that it cannot write. */
static bool is_readable(const struct object *object) {
    return is_in_segment(object->info, (uintptr_t)object->symbols, sizeof *object->symbols, PF_R) &&
           is_in_segment(object->info, (uintptr_t)object->strings, 1, PF_R) &&
           (!object->data ||
            is_in_segment(object->info, (uintptr_t)object->data, object->data_bytes, PF_R)) &&
           (!object->calls ||
            is_in_segment(object->info, (uintptr_t)object->calls, object->calls_bytes, PF_R));
}

static void bind_object(const struct dl_phdr_info *info) {
    const struct object object = object_of(info);
    const struct link_map *const own = object_symbols_own();
    if (!own || own->l_addr == info->dlpi_addr || !is_readable(&object))
        return;
    bind_entries(&object, own, object.data, object.relative, object.data_bytes);
    bind_entries(&object, own, object.calls, 0, object.calls_bytes);
}

/* --- what is new --- */

struct walk {
    size_t count;
    size_t first_new;
    uint64_t adds;
};

static int count_objects(struct dl_phdr_info *info, size_t size, void *arg) {
    struct walk *const walk = arg;
    (void)size;
    walk->count++;
    walk->adds = info->dlpi_adds;
    return 0;
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *arg) {
    struct walk *const walk = arg;
    (void)size;
    if (walk->count++ >= walk->first_new)
        bind_object(info);
    return 0;
}

/* The list is in the order of loading: what is new stands at its end. */
static void bind_new(void) {
    struct walk walk = {.count = 0};
    dl_iterate_phdr(count_objects, &walk);
    const uint64_t added = walk.adds - deep_binding.adds;
    walk.first_new = added < walk.count ? walk.count - added : 0;
    walk.count = 0;
    dl_iterate_phdr(visit_object, &walk);
    deep_binding.adds = walk.adds;
}

static int read_counter(struct dl_phdr_info *info, size_t size, void *arg) {
    uint64_t *const adds = arg;
    (void)size;
    *adds = info->dlpi_adds;
    return 1;
}

/* What was there before the first of them is bound as it should be. */
bool deep_binding_expect(void) {
    if (!atomic_load(&capture.armed))
        return false;
    if (!atomic_exchange(&deep_binding.used, true)) {
        sampler_choose_unnamed_signal();
        dl_iterate_phdr(read_counter, &deep_binding.adds);
    }
    atomic_store(&deep_binding.expected, true);
    return true;
}

void deep_binding_bind(void) {
    signal_mask before;
    if (!atomic_load(&capture.armed) || atomic_exchange(&deep_binding.busy, true))
        return;
    const bool blocked = signals_block(&before); /* a handler that leaves by a jump leaves a lock */
    own_tls.inside += OWN_WORK;
    if (loader_state_try_enter()) {
        atomic_store(&deep_binding.expected, false);
        bind_new();
        loader_state_leave();
    }
    own_tls.inside -= OWN_WORK;
    if (blocked)
        signals_restore(&before);
    atomic_store(&deep_binding.busy, false);
    sampler_check_signal();
}

/* --- telling --- */

static void report_unbound(const struct log *log) {
    const bool refused = atomic_load(&deep_binding.refused) != 0;
    const bool unknown = atomic_load(&deep_binding.expected) && !loader_state_is_known();
    if ((refused && !deep_binding.logged_refused) || (unknown && !deep_binding.logged_unknown))
        log_debug(log, "a library that was loaded with RTLD_DEEPBIND calls libc past us; threads "
                       "that it creates are not profiled");
    deep_binding.logged_refused |= refused;
    deep_binding.logged_unknown |= unknown;
}

void deep_binding_report(const struct log *log) {
    const uint32_t bound = atomic_load(&deep_binding.bound);
    if (bound != deep_binding.logged_bound)
        log_debug(log, "%u calls of libraries that were loaded with RTLD_DEEPBIND lead here so far",
                  bound);
    deep_binding.logged_bound = bound;
    report_unbound(log);
    if (!deep_binding.logged_namespaces && loader_state_has_namespaces()) {
        log_debug(log, "a library was loaded by dlmopen, with a C library of its own; its "
                       "allocations, and threads that it creates, are not profiled");
        deep_binding.logged_namespaces = true;
    }
}
