#include "loaded_image.h"

#include "dynamic_object.h"
#include "image_header.h"
#include "safe_read.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_HEADERS = 64,
    MAX_DYNAMIC = 256,
    MAX_NOTES = 4096,
    MAX_SYMBOLS = 1 << 20,
    MAX_STRINGS = 32 << 20,
    MAX_BUCKETS = 1 << 20,
    CHAIN_AT_ONCE = 256,
    MAX_CHAIN = 4096, /* largest number of symbols of one bucket */
    MAX_NAME = 64,    /* largest name that is searched */
};

enum section {
    SECTION_NONE,
    SECTION_TEXT,
    SECTION_NOTE,
    SECTION_SYMBOLS,
    SECTION_STRINGS,
    SECTIONS
};

/* Holds the addresses of an object's tables. */
struct loaded {
    const struct harvest_module *module;
    uint64_t notes[MAX_HEADERS]; /* PT_NOTE segments */
    size_t note_sizes[MAX_HEADERS];
    size_t note_count;
    uint64_t symbols;
    uint64_t strings;
    size_t string_bytes;
    uint64_t gnu_hash;
    uint64_t hash;
};

/* --- finding --- */

static bool read_dynamic(struct loaded *l, uint64_t address, size_t size) {
    Elf64_Dyn entries[MAX_DYNAMIC];
    const size_t count = size / sizeof *entries;
    if (count > MAX_DYNAMIC || !safe_read(address, entries, count * sizeof *entries))
        return false;
    struct dynamic_object dynamic;
    dynamic_object_read(&dynamic, entries, count, l->module->load_bias, l->module->start);
    l->symbols = dynamic_address(&dynamic, DT_SYMTAB);
    l->strings = dynamic_address(&dynamic, DT_STRTAB);
    l->string_bytes = dynamic_number(&dynamic, DT_STRSZ);
    l->gnu_hash = dynamic_address(&dynamic, DT_GNU_HASH);
    l->hash = dynamic_address(&dynamic, DT_HASH);
    return l->symbols && l->strings && l->string_bytes && l->string_bytes <= MAX_STRINGS;
}

static bool image_read_headers(struct loaded *l) {
    Elf64_Ehdr file;
    Elf64_Phdr headers[MAX_HEADERS];
    bool dynamic = false;
    if (!safe_read(l->module->start, &file, sizeof file) ||
        memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_phentsize != sizeof *headers ||
        file.e_phnum > MAX_HEADERS ||
        !safe_read(l->module->start + file.e_phoff, headers, file.e_phnum * sizeof *headers))
        return false;
    for (size_t i = 0; i < file.e_phnum; i++) {
        const uint64_t address = l->module->load_bias + headers[i].p_vaddr;
        if (headers[i].p_type == PT_DYNAMIC)
            dynamic = read_dynamic(l, address, headers[i].p_memsz);
        if (headers[i].p_type != PT_NOTE || headers[i].p_memsz > MAX_NOTES)
            continue;
        l->notes[l->note_count] = address;
        l->note_sizes[l->note_count++] = headers[i].p_memsz;
    }
    return dynamic;
}

static bool has_build_id(const struct loaded *l) {
    char notes[MAX_NOTES];
    for (size_t i = 0; i < l->note_count; i++)
        if (safe_read(l->notes[i], notes, l->note_sizes[i]) &&
            memmem(notes, l->note_sizes[i], l->module->build_id, l->module->build_id_size))
            return true;
    return false;
}

/* --- number of symbols: only the hash tables have it --- */

/* Returns the number of symbols, which is the number of the last symbol in the last chain, plus 1.
 * `last`: the symbol with which that chain begins. Returns 0 if the chain cannot be read. */
static size_t chain_end(uint64_t chains, uint32_t first, uint32_t last) {
    uint32_t chain[CHAIN_AT_ONCE];
    for (uint32_t at = last; at < MAX_SYMBOLS; at += CHAIN_AT_ONCE) {
        /* the table may end before a block of CHAIN_AT_ONCE does */
        size_t readable = CHAIN_AT_ONCE;
        while (readable &&
               !safe_read(chains + 4 * (uint64_t)(at - first), chain, readable * sizeof *chain))
            readable /= 2;
        for (size_t i = 0; i < readable; i++)
            if (chain[i] & 1)
                return at + i + 1;
        if (readable < CHAIN_AT_ONCE)
            return 0;
    }
    return 0;
}

/* Counts the symbols by the GNU hash table, whose layout object_symbols.c describes. */
static size_t count_by_gnu_hash(uint64_t table) {
    uint32_t head[4];
    if (!safe_read(table, head, sizeof head) || head[0] > MAX_BUCKETS)
        return 0;
    const uint64_t buckets = table + sizeof head + 8 * (uint64_t)head[2];
    uint32_t *const bucket = malloc(head[0] * sizeof *bucket + 1);
    uint32_t last = 0;
    if (bucket && safe_read(buckets, bucket, head[0] * sizeof *bucket))
        for (uint32_t i = 0; i < head[0]; i++)
            last = bucket[i] > last ? bucket[i] : last;
    free(bucket);
    if (last < head[1])
        return 0;
    return chain_end(buckets + 4 * (uint64_t)head[0], head[1], last);
}

/* --- one symbol --- */

/* Returns the symbol's value; 0 if it has another name, or is not defined here. */
static uint64_t value_named(const struct loaded *l, uint64_t number, const char *name) {
    Elf64_Sym symbol;
    char found[MAX_NAME];
    const size_t size = strlen(name) + 1;
    if (size > sizeof found ||
        !safe_read(l->symbols + number * sizeof symbol, &symbol, sizeof symbol) ||
        symbol.st_shndx == SHN_UNDEF || symbol.st_name > l->string_bytes ||
        size > l->string_bytes - symbol.st_name ||
        !safe_read(l->strings + symbol.st_name, found, size) || memcmp(found, name, size) != 0)
        return 0;
    return l->module->load_bias + symbol.st_value;
}

static uint64_t image_find_by_gnu_hash(const struct loaded *l, const char *name) {
    /* number of buckets, first symbol, words of the filter, shift of the filter */
    uint32_t head[4];
    uint32_t number;
    uint32_t chain = 0;
    const uint32_t hash = dynamic_gnu_hash(name);
    if (!l->gnu_hash || !safe_read(l->gnu_hash, head, sizeof head) || head[0] == 0)
        return 0;
    const uint64_t buckets = l->gnu_hash + sizeof head + 8 * (uint64_t)head[2];
    const uint64_t chains = buckets + 4 * (uint64_t)head[0];
    if (!safe_read(buckets + 4 * (uint64_t)(hash % head[0]), &number, sizeof number) ||
        number < head[1])
        return 0;
    /* the last hash of a chain is odd */
    for (int i = 0; i < MAX_CHAIN && !(chain & 1); i++, number++) {
        if (!safe_read(chains + 4 * (uint64_t)(number - head[1]), &chain, sizeof chain))
            return 0;
        const uint64_t value = (chain | 1) == (hash | 1) ? value_named(l, number, name) : 0;
        if (value)
            return value;
    }
    return 0;
}

uint64_t loaded_image_symbol(const struct harvest_module *module, const char *name) {
    struct loaded loaded = {.module = module};
    return image_read_headers(&loaded) ? image_find_by_gnu_hash(&loaded, name) : 0;
}

/* --- making --- */

/* Describes a file in memory: its header, the section headers, then the sections. */
struct image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[SECTIONS];
    struct {
        Elf64_Nhdr header;
        char name[4];
        unsigned char id[64];
    } note;
    Elf64_Sym symbols[];
};

static void describe_sections(struct image *image, const struct harvest_module *module,
                              size_t symbols, size_t strings) {
    const size_t bytes = symbols * sizeof *image->symbols;
    image->sections[SECTION_TEXT] = (Elf64_Shdr){.sh_type = SHT_NOBITS,
                                                 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                                 .sh_addr = module->text_start - module->load_bias,
                                                 .sh_size = module->text_end - module->text_start};
    image->sections[SECTION_NOTE] = (Elf64_Shdr){.sh_type = SHT_NOTE,
                                                 .sh_offset = offsetof(struct image, note),
                                                 .sh_size = sizeof image->note,
                                                 .sh_addralign = 4};
    image->sections[SECTION_SYMBOLS] = (Elf64_Shdr){.sh_type = SHT_DYNSYM,
                                                    .sh_link = SECTION_STRINGS,
                                                    .sh_offset = offsetof(struct image, symbols),
                                                    .sh_size = bytes,
                                                    .sh_entsize = sizeof *image->symbols};
    image->sections[SECTION_STRINGS] =
        (Elf64_Shdr){.sh_type = SHT_STRTAB,
                     .sh_offset = offsetof(struct image, symbols) + bytes,
                     .sh_size = strings};
}

/* Assigns symbols to sections by whether their addresses are in the code, because their real
 * sections are not known. */
static void place_symbols(struct image *image, size_t count) {
    const Elf64_Shdr *const text = &image->sections[SECTION_TEXT];
    for (size_t i = 0; i < count; i++) {
        Elf64_Sym *const symbol = &image->symbols[i];
        const bool is_code = symbol->st_value - text->sh_addr < text->sh_size;
        symbol->st_shndx = symbol->st_shndx != SHN_UNDEF && is_code ? SECTION_TEXT : SHN_UNDEF;
    }
}

bool loaded_image_make(const struct harvest_module *module, void **bytes, size_t *size) {
    struct loaded loaded = {.module = module};
    if (!module->build_id_size || module->build_id_size > sizeof((struct image *)0)->note.id ||
        !image_read_headers(&loaded))
        return false;
    uint32_t hash[2]; /* number of buckets, and number of symbols */
    const size_t symbols = loaded.gnu_hash ? count_by_gnu_hash(loaded.gnu_hash)
                           : loaded.hash && safe_read(loaded.hash, hash, sizeof hash) ? hash[1]
                                                                                      : 0;
    if (symbols == 0 || symbols > MAX_SYMBOLS)
        return false;
    const size_t symbol_bytes = symbols * sizeof(Elf64_Sym);
    const size_t image_bytes = sizeof(struct image) + symbol_bytes + loaded.string_bytes;
    struct image *const image = calloc(1, image_bytes);
    if (!image)
        return false;
    char *const strings = (char *)image->symbols + symbol_bytes;
    image->header = image_header(offsetof(struct image, sections), SECTIONS, SHN_UNDEF);
    describe_sections(image, module, symbols, loaded.string_bytes);
    image->note.header = (Elf64_Nhdr){4, module->build_id_size, NT_GNU_BUILD_ID};
    memcpy(image->note.name, "GNU", 4);
    memcpy(image->note.id, module->build_id, module->build_id_size);
    image->sections[SECTION_NOTE].sh_size =
        offsetof(struct image, note.id) - offsetof(struct image, note) + module->build_id_size;
    const bool complete = safe_read(loaded.symbols, image->symbols, symbol_bytes) &&
                          safe_read(loaded.strings, strings, loaded.string_bytes) &&
                          has_build_id(&loaded);
    if (!complete) {
        free(image);
        return false;
    }
    place_symbols(image, symbols);
    *bytes = image;
    *size = image_bytes;
    return true;
}
