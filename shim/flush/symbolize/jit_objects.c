#include "jit_objects.h"

#include "arch_object.h"
#include "elf_sections.h"
#include "files/trusted_file.h"
#include "loaded_image.h"
#include "safe_read.h"
#include "utf8.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static const char variable[] = "__jit_debug_descriptor";

enum {
    MAX_LISTS = 4096,   /* number of modules that are remembered, with a list or without */
    MAX_OBJECTS = 8192, /* largest number of objects of a list */
    MAX_SECTIONS = 1024,
    MAX_TABLE = 4 << 20, /* largest table of symbols, and largest table of names */
    MAX_NAMES = 8 << 20, /* bytes of all names together */
    MAX_READ = 64 << 20, /* bytes of all objects that are read at a time: some 50 ms */
    MAX_FILE_TABLE = 64 << 20,
    PIECE = 64 << 10,
};

/* Has the layout that GDB's manual defines. */
struct descriptor {
    uint32_t version;
    uint32_t action;
    uint64_t relevant;
    uint64_t first;
};

struct entry {
    uint64_t next;
    uint64_t previous;
    uint64_t file;
    uint64_t size;
};

/* --- finding the lists --- */

struct jit_list {
    uint64_t start; /* start of the module, and its first interval */
    uint64_t interval;
    uint64_t descriptor; /* address of the descriptor; 0: the module has none */
};

struct jit_lists {
    size_t count;
    struct jit_list all[MAX_LISTS];
};

/* Returns the offset of the variable's name in a table of names. -1: it has none. */
static int64_t name_in(const struct elf_sections *sections, const Elf64_Shdr *names, char *piece) {
    const size_t overlap = sizeof variable;
    for (uint64_t at = 0; at + overlap < names->sh_size; at += PIECE - overlap) {
        const uint64_t left = names->sh_size - at;
        const size_t size = left < PIECE ? left : PIECE;
        if (!elf_section_read_part(sections, names, at, piece, size))
            return -1;
        const char *const found = memmem(piece, size, variable, sizeof variable);
        if (found)
            return (int64_t)at + (found - piece);
    }
    return -1;
}

static uint64_t value_in(const struct elf_sections *sections, const Elf64_Shdr *table,
                         uint64_t name, Elf64_Sym *piece) {
    const uint64_t count = table->sh_size / sizeof *piece;
    const size_t at_once = PIECE / sizeof *piece;
    for (uint64_t at = 0; at < count; at += at_once) {
        const size_t some = count - at < at_once ? count - at : at_once;
        if (!elf_section_read_part(sections, table, at * sizeof *piece, piece,
                                   some * sizeof *piece))
            return 0;
        for (size_t i = 0; i < some; i++)
            if (piece[i].st_name == name && piece[i].st_shndx != SHN_UNDEF)
                return piece[i].st_value;
    }
    return 0;
}

static uint64_t value_in_table(const struct elf_sections *sections, const Elf64_Shdr *table) {
    if (table->sh_type != SHT_SYMTAB || table->sh_entsize != sizeof(Elf64_Sym) ||
        table->sh_link >= sections->count)
        return 0;
    const Elf64_Shdr *const names = &sections->headers[table->sh_link];
    void *const piece =
        table->sh_size <= MAX_FILE_TABLE && names->sh_size <= MAX_FILE_TABLE ? malloc(PIECE) : NULL;
    const int64_t name = piece ? name_in(sections, names, piece) : -1;
    const uint64_t value = name >= 0 ? value_in(sections, table, (uint64_t)name, piece) : 0;
    free(piece);
    return value;
}

/* Searches the module's file for the variable, because a library that contains LLVM does not export
 * it. If the file was replaced, the address leads to no list; the reader notices that, because
 * objects begin with a mark. */
static uint64_t descriptor_in_file(const struct harvest_module *module) {
    struct elf_sections sections;
    uint64_t value = 0;
    int file = trusted_file_open(module->path);
    if (file < 0)
        file = trusted_file_open_mapped(module->path, module->text_start);
    if (file < 0 || !elf_sections_open(&sections, file))
        return 0;
    for (uint32_t i = 0; i < sections.count && !value; i++)
        value = value_in_table(&sections, &sections.headers[i]);
    elf_sections_close(&sections);
    return value ? value + module->load_bias : 0;
}

static uint64_t descriptor_of(struct jit_lists *lists, const struct harvest_module *module) {
    for (size_t i = 0; i < lists->count; i++)
        if (lists->all[i].start == module->start &&
            lists->all[i].interval == module->first_interval)
            return lists->all[i].descriptor;
    if (lists->count == MAX_LISTS)
        return 0;
    struct jit_list *const list = &lists->all[lists->count++];
    const uint64_t exported = loaded_image_symbol(module, variable);
    *list = (struct jit_list){module->start, module->first_interval,
                              exported ? exported : descriptor_in_file(module)};
    return list->descriptor;
}

/* --- one object --- */

struct object {
    uint64_t at;
    uint64_t size;
    size_t *left; /* number of bytes that may still be read; 0 after the first refusal */
    Elf64_Ehdr head;
    Elf64_Shdr *sections;
};

/* Returns a malloc'ed copy of part of the object, which the caller frees; NULL: the object is
 * shorter, or unreadable. */
static void *read_part(const struct object *object, uint64_t at, uint64_t size, size_t max) {
    if (size == 0 || size > max || at > object->size || size > object->size - at)
        return NULL;
    if (size > *object->left) {
        *object->left = 0;
        return NULL;
    }
    *object->left -= size;
    void *const bytes = malloc(size);
    if (bytes && safe_read(object->at + at, bytes, size))
        return bytes;
    free(bytes);
    return NULL;
}

/* Returns the address of the function; 0: the symbol is no function. In an unlinked object, adds
 * the section's address. */
static uint64_t function_address(const struct object *object, const Elf64_Sym *symbol) {
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx >= object->head.e_shnum)
        return 0;
    const Elf64_Shdr *const home = &object->sections[symbol->st_shndx];
    if (!(home->sh_flags & SHF_EXECINSTR) || !home->sh_addr)
        return 0;
    return object->head.e_type == ET_REL ? home->sh_addr + symbol->st_value : symbol->st_value;
}

/* Adds a function. Returns false if no more functions are kept. */
static bool jit_objects_add(struct jit_objects *objects, uint64_t address, uint64_t size,
                            const char *name) {
    const size_t length = strnlen(name, MAX_GENERATED_NAME);
    const size_t kept =
        length < MAX_GENERATED_NAME ? length : utf8_cut(name, MAX_GENERATED_NAME - 1);
    const uint32_t number = (uint32_t)objects->names.count;
    return objects->arena.total < MAX_NAMES &&
           arena_list_add(&objects->arena, &objects->names,
                          arena_copy(&objects->arena, name, kept)) &&
           code_map_add(&objects->ranges, address, size, number);
}

static bool add_symbols(struct jit_objects *objects, const struct object *object,
                        const Elf64_Shdr *table) {
    const Elf64_Shdr *const strings = &object->sections[table->sh_link];
    Elf64_Sym *const symbols = read_part(object, table->sh_offset, table->sh_size, MAX_TABLE);
    char *const names = read_part(object, strings->sh_offset, strings->sh_size, MAX_TABLE);
    bool kept = true;
    for (uint64_t i = 0; symbols && names && kept && i < table->sh_size / sizeof *symbols; i++) {
        const uint64_t address = function_address(object, &symbols[i]);
        const uint32_t name = symbols[i].st_name;
        if (address && name < strings->sh_size && names[name] && !names[strings->sh_size - 1])
            kept = jit_objects_add(objects, address, symbols[i].st_size, names + name);
    }
    free(symbols);
    free(names);
    return kept;
}

static bool add_object(struct jit_objects *objects, uint64_t at, uint64_t size) {
    struct object object = {.at = at, .size = size, .left = &objects->left};
    const Elf64_Ehdr *const head = &object.head;
    bool kept = true;
    if (size < sizeof *head || !safe_read(at, &object.head, sizeof *head) ||
        memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64 ||
        head->e_ident[EI_DATA] != ELFDATA2LSB || head->e_machine != ARCH_ELF_MACHINE ||
        head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shnum > MAX_SECTIONS)
        return true;
    const size_t bytes = head->e_shnum * sizeof *object.sections;
    object.sections = read_part(&object, head->e_shoff, bytes, bytes);
    for (uint32_t i = 0; object.sections && kept && i < head->e_shnum; i++) {
        const Elf64_Shdr *const section = &object.sections[i];
        if (section->sh_type == SHT_SYMTAB && section->sh_link < head->e_shnum)
            kept = add_symbols(objects, &object, section) && objects->left;
    }
    free(object.sections);
    return kept && objects->left;
}

/* --- the list --- */

/* Reads the list within a bound, because the list may be cut, or circular, while it changes. */
bool jit_objects_read_list(struct jit_objects *objects, uint64_t at) {
    struct descriptor descriptor;
    struct entry entry = {0};
    if (!objects->read)
        objects->left = MAX_READ;
    objects->read = true;
    if (!safe_read(at, &descriptor, sizeof descriptor) || descriptor.version != 1)
        return true;
    entry.next = descriptor.first;
    for (int i = 0; i < MAX_OBJECTS; i++) {
        if (!entry.next || !safe_read(entry.next, &entry, sizeof entry))
            return true;
        if (!add_object(objects, entry.file, entry.size))
            return false;
    }
    return false;
}

bool jit_objects_read(struct jit_objects *objects, const struct harvest_module *modules,
                      size_t count) {
    bool kept = true;
    jit_objects_forget(objects);
    if (!objects->lists)
        objects->lists = calloc(1, sizeof *objects->lists);
    for (size_t i = 0; objects->lists && kept && i < count; i++) {
        const uint64_t descriptor =
            modules[i].unloaded ? 0 : descriptor_of(objects->lists, &modules[i]);
        kept = !descriptor || jit_objects_read_list(objects, descriptor);
    }
    return kept;
}

const char *jit_objects_find(struct jit_objects *objects, uint64_t address) {
    uint32_t number;
    return code_map_find(&objects->ranges, address, &number) && number < objects->names.count
               ? objects->names.items[number]
               : NULL;
}

void jit_objects_forget(struct jit_objects *objects) {
    code_map_free(&objects->ranges);
    arena_free(&objects->arena);
    objects->names = (struct arena_list){0};
    objects->read = false;
}

void jit_objects_close(struct jit_objects *objects) {
    jit_objects_forget(objects);
    free(objects->lists);
    objects->lists = NULL;
}
