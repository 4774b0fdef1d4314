#include "variable_search.h"

#include "arch_machine.h"
#include "arch_object.h"
#include "dynamic_object.h"
#include "module_generation.h"
#include "symbols/object_symbols.h"
#include "unwind/stack_memory.h"

#include <string.h>

enum {
    DEFINERS = 16, /* counts copies of one library, because a plug-in may bring a copy of its own */
    MOST_MODULES = 1 << 20, /* a larger module number is not plausible */
    STATIC_TLS_BYTES =
        /* searches so many bytes of static TLS below the thread pointer, on the helper's stack of 2
         * MiB; the thread vector leads to variables further down */
    1 << 19
};

/* Describes an object that defines the variable. */
struct definer {
    const ElfW(Phdr) * headers;
    const ElfW(Dyn) * dynamic;
    uint64_t source;
    uint64_t module;
    uint64_t value; /* the variable's offset in the object's block */
    uint64_t bytes; /* size of the block */
    /* offset of the block from the thread pointer; 0: not known to be in static TLS */
    intptr_t block;
    bool may_go;
    bool found; /* a relocation has led to this definer */
};

struct walk {
    struct variable_search *search;
    struct definer definers[DEFINERS];
    uint32_t count;
    bool incomplete;
    /* no object was ever unloaded, so the loader has reused no module number */
    bool numbers_are_new;
};

struct object {
    struct walk *walk;
    struct object_segments segments;
    struct dynamic_object dynamic;
    const ElfW(Sym) * symbols;
    const char *strings;
    const struct definer *definer; /* the definer that this object is, or NULL */
};

static bool can_read(const struct object *object, const void *address, size_t size) {
    return object_is_readable(&object->segments, (uintptr_t)address, size);
}

static const void *table_of(const struct object *object, int64_t tag, size_t size) {
    const void *const table = (const void *)dynamic_address(&object->dynamic, tag);
    return table && can_read(object, table, size) ? table : NULL;
}

/* Opens the object's tables. Returns false if the object has no readable symbols. */
static bool open_object(struct object *object, struct walk *walk, const struct dl_phdr_info *info) {
    *object = (struct object){.walk = walk, .segments = object_segments_of(info)};
    object->dynamic = dynamic_object_of(&object->segments);
    object->symbols = table_of(object, DT_SYMTAB, sizeof *object->symbols);
    object->strings = table_of(object, DT_STRTAB, 1);
    return object->symbols && object->strings;
}

/* --- definers --- */

static bool can_go(const struct fixed_modules *fixed, const struct dl_phdr_info *info) {
    for (int i = 0; fixed && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            return !fixed_modules_at(fixed, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return true;
}

/* Returns the offset of the object's block from the calling thread's pointer, as the loader reports
 * it; 0: the thread has no block, or the block is not in static TLS. */
static intptr_t static_block(const struct dl_phdr_info *info) {
    const uintptr_t block = (uintptr_t)info->dlpi_tls_data;
    const intptr_t offset = (intptr_t)(block - thread_pointer());
    return block && thread_offset_is_static(offset, STATIC_TLS_BYTES) ? offset : 0;
}

static int variable_search_definer(struct dl_phdr_info *info, size_t size, void *arg) {
    struct walk *const walk = arg;
    const struct object_segments segments = object_segments_of(info);
    const ElfW(Phdr) *const tls = object_header(&segments, PT_TLS);
    struct object object;
    walk->numbers_are_new = info->dlpi_subs == 0;
    if (!tls || size < sizeof *info || walk->count == DEFINERS || !open_object(&object, walk, info))
        return 0;
    const struct link_map map = object_symbols_map(info);
    const ElfW(Sym) *const symbol = object_symbols_thread_local(&map, walk->search->name);
    if (!symbol || symbol->st_size != sizeof(void *) || tls->p_memsz < sizeof(void *) ||
        symbol->st_value > tls->p_memsz - sizeof(void *))
        return 0;
    const uint64_t source =
        walk->search->wanted & walk->search->source(info, info->dlpi_name ? info->dlpi_name : "");
    if (source)
        walk->definers[walk->count++] =
            (struct definer){.headers = info->dlpi_phdr,
                             .dynamic = object.dynamic.entries,
                             .source = source,
                             .module = info->dlpi_tls_modid,
                             .value = symbol->st_value,
                             .bytes = tls->p_memsz,
                             .block = static_block(info),
                             .may_go = can_go(walk->search->fixed, info)};
    return 0;
}

/* --- variables that relocations refer to --- */

static void variable_search_add(struct variable_search *search,
                                const struct thread_variable *variable) {
    for (uint32_t i = 0; i < search->count; i++)
        if (search->found[i].module == variable->module &&
            search->found[i].offset == variable->offset)
            return;
    if (search->count < THREAD_VARIABLES)
        search->found[search->count++] = *variable;
}

/* Adds a variable in static TLS; `block` is where the definer's block begins. */
static void add_static(struct walk *walk, struct definer *definer, intptr_t block) {
    definer->found = true;
    variable_search_add(walk->search,
                        &(struct thread_variable){.source = definer->source,
                                                  .may_go = definer->may_go,
                                                  .offset = block + (intptr_t)definer->value,
                                                  .block = block,
                                                  .bytes = definer->bytes,
                                                  .object = (uintptr_t)definer->headers});
}

static void add_dynamic(struct walk *walk, struct definer *definer) {
    const uint64_t generation =
        walk->numbers_are_new ? 0 : module_generation(definer->module, definer->dynamic);
    definer->found = true;
    variable_search_add(walk->search,
                        &(struct thread_variable){.source = definer->source,
                                                  .may_go = definer->may_go,
                                                  .module = definer->module,
                                                  .offset = (intptr_t)definer->value,
                                                  .bytes = definer->bytes,
                                                  .object = (uintptr_t)definer->headers,
                                                  .generation = generation});
}

/* Finds the definer whose variable lies at that offset: a definer whose block is known to lie
 * there; else the object that has the relocation, if its own block may lie there; else a definer
 * whose block is not known. */
static struct definer *definer_at(struct walk *walk, const struct object *object, intptr_t offset) {
    for (uint32_t i = 0; i < walk->count; i++) {
        struct definer *const d = &walk->definers[i];
        if (d->block && d->block + (intptr_t)d->value == offset)
            return d;
    }
    for (uint32_t i = 0; i < walk->count; i++)
        if (&walk->definers[i] == object->definer && !walk->definers[i].block)
            return &walk->definers[i];
    for (uint32_t i = 0; i < walk->count; i++)
        if (!walk->definers[i].block)
            return &walk->definers[i];
    return NULL;
}

static void found_offset(struct walk *walk, const struct object *object, intptr_t offset) {
    if (offset == 0) {
        walk->incomplete = true;
        return;
    }
    if (!thread_offset_is_static(offset, THREAD_MOST_OFFSET))
        return;
    struct definer *const definer = definer_at(walk, object, offset);
    if (definer)
        add_static(walk, definer, offset - (intptr_t)definer->value);
}

static void found_module(struct walk *walk, uint64_t module, uint64_t offset) {
    if (module == 0)
        walk->incomplete = true;
    for (uint32_t i = 0; i < walk->count; i++) {
        struct definer *const definer = &walk->definers[i];
        if (definer->module != module || definer->value != offset)
            continue;
        if (definer->block)
            add_static(walk, definer, definer->block);
        else
            add_dynamic(walk, definer);
    }
}

/* --- relocations --- */

/* Handles a TLS descriptor. If the loader has not processed the descriptor yet (glibc before 2.34
 * may wait for its first use), the word is 0 or leads into the object itself. */
static void found_descriptor(struct walk *walk, const struct object *object, uintptr_t argument) {
    uint64_t index[2];
    if (thread_offset_is_static((intptr_t)argument, THREAD_MOST_OFFSET)) {
        found_offset(walk, object, (intptr_t)argument);
        return;
    }
    if (argument % sizeof *index != 0)
        return;
    if (argument == 0 || can_read(object, (const void *)argument, 1)) {
        walk->incomplete = true;
        return;
    }
    if (!memory_is_readable(argument) || !memory_is_readable(argument + sizeof *index))
        return;
    memcpy(index, (const void *)argument, sizeof index);
    if (index[0] != 0 && index[0] < MOST_MODULES)
        found_module(walk, index[0], index[1]);
}

static bool is_named(const struct walk *walk, const struct object *object, uint32_t number) {
    const ElfW(Sym) *const symbol = &object->symbols[number];
    const size_t size = strlen(walk->search->name) + 1;
    if (!can_read(object, symbol, sizeof *symbol) ||
        !can_read(object, object->strings + symbol->st_name, size))
        return false;
    return memcmp(object->strings + symbol->st_name, walk->search->name, size) == 0;
}

/* Returns true if the relocation refers to the variable. A relocation that the linker has bound
 * names no symbol: the variable's offset is then in the entry, or, for a module's number, in the
 * word behind it. */
static bool refers_to_variable(const struct walk *walk, const struct object *object,
                               const ElfW(Rela) * entry, const uint64_t words[2]) {
    const uint32_t number = ELF64_R_SYM(entry->r_info);
    if (number)
        return entry->r_addend == 0 && is_named(walk, object, number);
    if (!object->definer)
        return false;
    const bool is_module = ELF64_R_TYPE(entry->r_info) == ARCH_RELOCATION_TLS_MODULE;
    return (is_module ? words[1] : (uint64_t)entry->r_addend) == object->definer->value;
}

static bool variable_search_entry(const ElfW(Rela) * entry, void *arg) {
    const struct object *const object = arg;
    struct walk *const walk = object->walk;
    const uint32_t type = ELF64_R_TYPE(entry->r_info);
    const void *const place = (const void *)(object->segments.bias + entry->r_offset);
    uint64_t words[2] = {0, 0};
    if (type != ARCH_RELOCATION_TLS_DESCRIPTOR && type != ARCH_RELOCATION_TLS_MODULE &&
        type != ARCH_RELOCATION_TLS_OFFSET)
        return false;
    const size_t size = type == ARCH_RELOCATION_TLS_OFFSET ? sizeof *words : sizeof words;
    if (!can_read(object, place, size))
        return false;
    memcpy(words, place, size);
    if (!refers_to_variable(walk, object, entry, words))
        return false;
    if (type == ARCH_RELOCATION_TLS_OFFSET)
        found_offset(walk, object, (intptr_t)words[0]);
    else if (type == ARCH_RELOCATION_TLS_MODULE)
        found_module(walk, words[0], words[1]);
    else
        found_descriptor(walk, object, words[1]);
    return false;
}

static int variable_search_relocations(struct dl_phdr_info *info, size_t size, void *arg) {
    struct walk *const walk = arg;
    struct object object;
    (void)size;
    if (!open_object(&object, walk, info))
        return 0;
    for (uint32_t i = 0; i < walk->count; i++)
        if (walk->definers[i].headers == info->dlpi_phdr)
            object.definer = &walk->definers[i];
    (void)dynamic_relocations_visit(&object.segments, &object.dynamic, variable_search_entry,
                                    &object);
    return 0;
}

/* --- the search --- */

static void add_unused(struct walk *walk) {
    for (uint32_t i = 0; i < walk->count; i++) {
        struct definer *const definer = &walk->definers[i];
        if (definer->found)
            continue;
        if (definer->block)
            add_static(walk, definer, definer->block);
        else if (definer->module)
            add_dynamic(walk, definer);
    }
}

bool variable_search_run(struct variable_search *search) {
    struct walk walk = {.search = search};
    dl_iterate_phdr(variable_search_definer, &walk);
    if (walk.count == 0)
        return true;
    dl_iterate_phdr(variable_search_relocations, &walk);
    add_unused(&walk);
    return !walk.incomplete;
}
