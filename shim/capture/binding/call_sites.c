#include "call_sites.h"

#include "arch_memory.h"
#include "arch_object.h"
#include "dynamic_object.h"
#include "opened_page.h"
#include "symbols/object_symbols.h"

/* Describes the tables of one object, as the loader has used them. */
struct call_sites_of {
    struct object_segments segments;
    struct dynamic_object dynamic;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint16_t *versions;     /* DT_VERSYM, or NULL */
    const ElfW(Verneed) * needed; /* DT_VERNEED, or NULL */
};

static struct call_sites_of object_of(const struct dl_phdr_info *info) {
    const struct object_segments segments = object_segments_of(info);
    const struct dynamic_object dynamic = dynamic_object_of(&segments);
    return (struct call_sites_of){.segments = segments,
                                  .dynamic = dynamic,
                                  .symbols = (const void *)dynamic_address(&dynamic, DT_SYMTAB),
                                  .strings = (const void *)dynamic_address(&dynamic, DT_STRTAB),
                                  .versions = (const void *)dynamic_address(&dynamic, DT_VERSYM),
                                  .needed = (const void *)dynamic_address(&dynamic, DT_VERNEED)};
}

/* Returns true if the loader makes the address read-only: it does so for whole pages of
 * PT_GNU_RELRO. */
static bool is_read_only(const struct object_segments *object, uintptr_t address) {
    const ElfW(Phdr) *const part = object_header(object, PT_GNU_RELRO);
    const uintptr_t start = part ? object->bias + part->p_vaddr : 0;
    return part && address >= (start & -arch_page_bytes()) &&
           address < ((start + part->p_memsz) & -arch_page_bytes());
}

/* Returns true if the tables can be used. Returns false for objects that the loader cannot write,
 * the vDSO among them: the pointers to their tables are not relocated. */
static bool call_sites_are_readable(const struct call_sites_of *object) {
    const struct object_segments *const in = &object->segments;
    return object_has(in, (uintptr_t)object->dynamic.entries, 1, PF_W) &&
           object_is_readable(in, (uintptr_t)object->symbols, sizeof *object->symbols) &&
           object_is_readable(in, (uintptr_t)object->strings, 1);
}

/* --- binding --- */

struct opened {
    /* stays open between entries, because the entries of one object are adjacent */
    struct opened_page page;
    const struct call_sites_of *object;
    call_site_rule *rule;
    struct call_site_counts *counts;
};

static bool open_page(struct opened *opened, uintptr_t address) {
    return opened_page_has(&opened->page, address) ||
           opened_page_move(&opened->page, address,
                            is_read_only(&opened->object->segments, address));
}

static void call_site_replace(struct opened *opened, uintptr_t address, uintptr_t old,
                              uintptr_t own) {
    if (!open_page(opened, address))
        opened->counts->refused++;
    /* exchanges atomically, because the object's threads run: a first call may just bind the entry,
     * or the object's code may have changed it. Pairs with the load of the entry in their calls:
     * the data that the hook needs was written before */
    else if (__atomic_compare_exchange_n((uintptr_t *)address, &old, own, false, __ATOMIC_SEQ_CST,
                                         __ATOMIC_RELAXED))
        opened->counts->bound++;
}

static bool is_of_a_function(uint32_t type) {
    return type == ARCH_RELOCATION_PLT || type == ARCH_RELOCATION_GOT ||
           type == ARCH_RELOCATION_DATA;
}

static bool bind_entry(const ElfW(Rela) * entry, void *arg) {
    struct opened *const opened = arg;
    const struct call_sites_of *const object = opened->object;
    const uint32_t type = ELF64_R_TYPE(entry->r_info);
    const ElfW(Sym) *const symbol = &object->symbols[ELF64_R_SYM(entry->r_info)];
    const uintptr_t address = object->segments.bias + entry->r_offset;
    if (!is_of_a_function(type) || symbol->st_shndx != SHN_UNDEF || symbol->st_name == 0 ||
        entry->r_addend != 0 || address % sizeof(uintptr_t) != 0 ||
        !object_has(&object->segments, address, sizeof(uintptr_t), PF_W))
        return false;
    struct call_site site = {.name = object->strings + symbol->st_name,
                             .value = __atomic_load_n((uintptr_t *)address, __ATOMIC_RELAXED),
                             .object = object,
                             .symbol = ELF64_R_SYM(entry->r_info)};
    /* an entry that leads back into the object's own code is not bound yet */
    site.is_unbound =
        type == ARCH_RELOCATION_PLT && object_has(&object->segments, site.value, 1, PF_X);
    const uintptr_t own = opened->rule(&site);
    if (own && own != site.value)
        call_site_replace(opened, address, site.value, own);
    return false;
}

static void bind_object(const struct dl_phdr_info *info, call_site_rule *rule,
                        struct call_site_counts *counts) {
    const struct call_sites_of object = object_of(info);
    struct opened opened = {.object = &object, .rule = rule, .counts = counts};
    const struct link_map *const own = object_symbols_own();
    if (!own || own->l_addr == info->dlpi_addr || !object.symbols ||
        !call_sites_are_readable(&object))
        return;
    (void)dynamic_relocations_visit(&object.segments, &object.dynamic, bind_entry, &opened);
    opened_page_close(&opened.page);
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
