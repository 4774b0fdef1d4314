#include "call_sites.h"

#include "arch_memory.h"
#include "arch_object.h"
#include "bare_syscall.h"
#include "object_symbols.h"

#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* One object's tables, as the loader has used them. */
struct call_sites_of {
    const struct dl_phdr_info *info;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint16_t *versions;     /* DT_VERSYM, or NULL */
    const ElfW(Verneed) * needed; /* DT_VERNEED, or NULL */
    const ElfW(Rela) * data;      /* DT_RELA: the first `relative` of them name no symbol */
    size_t data_bytes;
    size_t relative;
    const ElfW(Rela) * calls; /* DT_JMPREL */
    size_t calls_bytes;
};

static void read_entry(struct call_sites_of *object, const ElfW(Dyn) * entry) {
    const void *const pointer = (const void *)entry->d_un.d_ptr;
    switch (entry->d_tag) {
    case DT_SYMTAB:
        object->symbols = pointer;
        break;
    case DT_STRTAB:
        object->strings = pointer;
        break;
    case DT_VERSYM:
        object->versions = pointer;
        break;
    case DT_VERNEED: /* the loader has not made an address of it */
        object->needed = (const void *)(object->info->dlpi_addr + entry->d_un.d_ptr);
        break;
    case DT_RELA:
        object->data = pointer;
        break;
    case DT_RELASZ:
        object->data_bytes = entry->d_un.d_val;
        break;
    case DT_RELACOUNT:
        object->relative = entry->d_un.d_val;
        break;
    case DT_JMPREL:
        object->calls = pointer;
        break;
    case DT_PLTRELSZ:
        object->calls_bytes = entry->d_un.d_val;
        break;
    }
}

static struct call_sites_of object_of(const struct dl_phdr_info *info) {
    struct call_sites_of object = {.info = info};
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++)
        read_entry(&object, entry);
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

/* The loader makes read-only the whole pages of PT_GNU_RELRO. */
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

/* Returns false for the vDSO and for objects that the loader cannot write: it has not made
 * addresses of their pointers. */
static bool call_sites_are_readable(const struct call_sites_of *object) {
    return is_in_segment(object->info, (uintptr_t)object->symbols, sizeof *object->symbols, PF_R) &&
           is_in_segment(object->info, (uintptr_t)object->strings, 1, PF_R) &&
           (!object->data ||
            is_in_segment(object->info, (uintptr_t)object->data, object->data_bytes, PF_R)) &&
           (!object->calls ||
            is_in_segment(object->info, (uintptr_t)object->calls, object->calls_bytes, PF_R));
}

/* --- binding --- */

/* The page that is being written: the entries of one object are adjacent. */
struct opened {
    void *page;    /* NULL: none */
    bool was_open; /* it was writable before, and stays so */
    const struct call_sites_of *object;
    call_site_rule *rule;
    struct call_site_counts *counts;
};

static void close_page(struct opened *opened) {
    if (opened->page && !opened->was_open)
        (void)mprotect(opened->page, arch_page_bytes(), PROT_READ);
    opened->page = NULL;
}

/* The program may have made read-only a page that the loader did not, or have made one writable
 * again. Asks the kernel to change no bit there: that fails where a store would kill. */
static bool is_writable(uintptr_t address) {
    const int saved = errno;
    const long woken = bare_syscall(SYS_futex, (long)address, FUTEX_WAKE_OP_PRIVATE, 0, 0,
                                    (long)address, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_NE, 0));
    errno = saved;
    return woken >= 0;
}

static bool open_page(struct opened *opened, uintptr_t address) {
    void *const page = (void *)(address & -arch_page_bytes());
    if (page == opened->page)
        return true;
    close_page(opened);
    opened->was_open = is_writable(address);
    if (!opened->was_open && (!is_read_only(opened->object->info, address) ||
                              mprotect(page, arch_page_bytes(), PROT_READ | PROT_WRITE) != 0))
        return false;
    opened->page = page;
    return true;
}

static void call_site_replace(struct opened *opened, uintptr_t address, uintptr_t old,
                              uintptr_t own) {
    if (!open_page(opened, address))
        opened->counts->refused++;
    /* the object's threads run: a first call may be binding the entry, or its code may have changed
     * it */
    else if (__atomic_compare_exchange_n((uintptr_t *)address, &old, own, false, __ATOMIC_SEQ_CST,
                                         __ATOMIC_RELAXED))
        opened->counts->bound++;
}

static bool is_of_a_function(uint32_t type) {
    return type == ARCH_RELOCATION_PLT || type == ARCH_RELOCATION_GOT ||
           type == ARCH_RELOCATION_DATA;
}

static void bind_entry(struct opened *opened, const ElfW(Rela) * entry) {
    const struct call_sites_of *const object = opened->object;
    const uint32_t type = ELF64_R_TYPE(entry->r_info);
    const ElfW(Sym) *const symbol = &object->symbols[ELF64_R_SYM(entry->r_info)];
    const uintptr_t address = object->info->dlpi_addr + entry->r_offset;
    if (!is_of_a_function(type) || symbol->st_shndx != SHN_UNDEF || symbol->st_name == 0 ||
        entry->r_addend != 0 || address % sizeof(uintptr_t) != 0 ||
        !is_in_segment(object->info, address, sizeof(uintptr_t), PF_W))
        return;
    struct call_site site = {.name = object->strings + symbol->st_name,
                             .value = __atomic_load_n((uintptr_t *)address, __ATOMIC_RELAXED),
                             .object = object,
                             .symbol = ELF64_R_SYM(entry->r_info)};
    /* not bound yet: the entry leads back into the object's own code */
    site.is_unbound =
        type == ARCH_RELOCATION_PLT && is_in_segment(object->info, site.value, 1, PF_X);
    const uintptr_t own = opened->rule(&site);
    if (own && own != site.value)
        call_site_replace(opened, address, site.value, own);
}

static void bind_entries(struct opened *opened, const ElfW(Rela) * entries, size_t from,
                         size_t bytes) {
    for (size_t i = from; entries && i < bytes / sizeof *entries; i++)
        bind_entry(opened, &entries[i]);
}

static void bind_object(const struct dl_phdr_info *info, call_site_rule *rule,
                        struct call_site_counts *counts) {
    const struct call_sites_of object = object_of(info);
    struct opened opened = {.object = &object, .rule = rule, .counts = counts};
    const struct link_map *const own = object_symbols_own();
    if (!own || own->l_addr == info->dlpi_addr || !call_sites_are_readable(&object))
        return;
    bind_entries(&opened, object.data, object.relative, object.data_bytes);
    bind_entries(&opened, object.calls, 0, object.calls_bytes);
    close_page(&opened);
}

/* --- new objects --- */

struct walk {
    size_t count;
    size_t first_new;
    uint64_t adds;
    call_site_rule *rule;
    struct call_site_counts *counts;
};

static int count_objects(struct dl_phdr_info *info, size_t size, void *arg) {
    struct walk *const walk = arg;
    (void)size;
    walk->count++;
    walk->adds = info->dlpi_adds;
    return 0;
}

static int call_sites_visit_object(struct dl_phdr_info *info, size_t size, void *arg) {
    struct walk *const walk = arg;
    (void)size;
    if (walk->count++ >= walk->first_new)
        bind_object(info, walk->rule, walk->counts);
    return 0;
}

void call_sites_bind_new(uint64_t *adds, call_site_rule *rule, struct call_site_counts *counts) {
    struct walk walk = {.rule = rule, .counts = counts};
    dl_iterate_phdr(count_objects, &walk);
    const uint64_t added = walk.adds - *adds;
    walk.first_new = added < walk.count ? walk.count - added : 0;
    walk.count = 0;
    dl_iterate_phdr(call_sites_visit_object, &walk);
    *adds = walk.adds;
}

static int call_sites_read_counter(struct dl_phdr_info *info, size_t size, void *arg) {
    uint64_t *const adds = arg;
    (void)size;
    *adds = info->dlpi_adds;
    return 1;
}

uint64_t call_sites_adds(void) {
    uint64_t adds = 0;
    dl_iterate_phdr(call_sites_read_counter, &adds);
    return adds;
}

/* --- versions --- */

static const char *name_of_version(const struct call_sites_of *object, uint16_t number) {
    const ElfW(Verneed) *from = object->needed;
    for (; from; from = from->vn_next ? (const void *)((const char *)from + from->vn_next) : NULL) {
        const ElfW(Vernaux) *version = (const void *)((const char *)from + from->vn_aux);
        for (size_t i = 0; i < from->vn_cnt; i++) {
            if (version->vna_other == number)
                return object->strings + version->vna_name;
            version = (const void *)((const char *)version + version->vna_next);
        }
    }
    return NULL;
}

const char *call_site_version(const struct call_site *site) {
    enum { NUMBER = 0x7fff }; /* DT_VERSYM without VERSYM_HIDDEN */
    const struct call_sites_of *const object = site->object;
    return object->versions ? name_of_version(object, object->versions[site->symbol] & NUMBER)
                            : NULL;
}
