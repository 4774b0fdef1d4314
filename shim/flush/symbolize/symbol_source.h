/* Holds one object whose addresses are named: its files while they are open, and the data that is
 * kept from one export to the next. Context: flush. */
#ifndef OTELPROF_SYMBOL_SOURCE_H
#define OTELPROF_SYMBOL_SOURCE_H

#include "build_id_note.h"
#include "dwarf_functions.h"
#include "elf_file.h"
#include "files/file_hash.h"
#include "harvest.h"
#include "symbol_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum {
    /* Bounds the names of one file that are noted as too costly to be demangled. Once a file has
     * that many such names, its further names stay mangled. */
    MAX_COSTLY_NAMES = 4,
};

/* Describes the identity and state of a file: data of a file that was rewritten is not reused. */
struct file_state {
    dev_t device;
    ino_t inode;
    uint64_t size;
    struct timespec modified;
    struct timespec changed;
};

/* Describes a file that was opened for symbols. */
struct symbol_source {
    char *path;
    uint8_t build_id[MAX_BUILD_ID_BYTES];
    uint32_t build_id_size;
    unsigned used; /* value of the symbolizer's `exports` at the last use */
    /* valid for this export: */
    bool opened;
    bool searched;    /* debug files were searched; `table` is complete, or deferred */
    bool dwarf_tried; /* opening debug information was tried; `functions` is the result */
    bool deferred;    /* debug information was left for another export */
    bool table_deferred;
    struct elf_file file;
    struct dwarf_functions *functions;
    /* valid for longer than this export: */
    bool abandoned;       /* work was abandoned: `file` must not be touched any more */
    bool lines_abandoned; /* work in libdw was abandoned: symbols still have names, but no lines */
    bool dwarf_read;      /* debug information was read at least once */
    unsigned costly;      /* number of names that are too costly to be demangled */
    uint64_t costly_names[MAX_COSTLY_NAMES];
    struct symbol_table table;
    struct file_state states[ELF_PARTS]; /* states of the files that `table` was read from */
    bool hashed;
    char htlhash[FILE_HASH_TEXT_BYTES]; /* "": the file cannot be read */
};

/* Makes a source. Returns NULL without memory. The caller closes the source. */
struct symbol_source *symbol_source_new(const struct harvest_module *module);

/* Frees the source, and everything that it owns. */
void symbol_source_close(struct symbol_source *source);

/* Closes the files of the source; the table stays. */
void symbol_source_close_file(struct symbol_source *source);
void symbol_source_forget_table(struct symbol_source *source);

/* Returns true if the source belongs to the module. */
bool symbol_source_is_of(const struct symbol_source *source, const struct harvest_module *module);

/* Reads the table of the open files, unless it is known from an earlier export. A large table that
 * takes more than `room` bytes is left for another export. */
void symbol_source_load_table(struct symbol_source *source, uint64_t room);

/* symbol_source_is_costly() returns true if the name is too costly to be demangled, or if there are
 * too many such names. symbol_source_note_costly() notes a name for which it has returned false. */
bool symbol_source_is_costly(const struct symbol_source *source, const char *name);
void symbol_source_note_costly(struct symbol_source *source, const char *name);

#endif
