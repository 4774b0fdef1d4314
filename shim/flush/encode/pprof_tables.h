/* Holds the tables of one pprof profile: strings, functions, mappings, locations, stacks. Each item
 * is stored once. The tables outlive the exports from which they were read. Context: flush. */
#ifndef OTELPROF_PPROF_TABLES_H
#define OTELPROF_PPROF_TABLES_H

#include "otlp_state.h"

struct pprof_tables {
    struct arena arena;
    bool frozen;           /* no item is added any more: a missing item has number -1 */
    struct intern strings; /* number 0 is "" */
    struct intern mappings;
    struct intern functions;
    struct intern locations;
    struct arena_list lines; /* lists of functions, by the location's number */
    struct intern stacks;
};

/* Lists an export's tables that are being read. */
enum read_table { READ_FUNCTIONS, READ_MAPPINGS, READ_LOCATIONS, READ_STACKS, READ_TABLES };
struct pprof_reading {
    const struct otlp_writer *writer;
    /* numbers in these tables plus 1, by an item's index in the export; 0: not read yet */
    int32_t *numbers[READ_TABLES]; /* one allocation, which the first pointer owns */
};

/* Opens a reading. Returns false without memory. Call pprof_reading_close() in either case. */
bool pprof_reading_open(struct pprof_reading *reading, const struct otlp_writer *writer);
void pprof_reading_close(struct pprof_reading *reading);

/* Returns the number of a key in a table, or in another index of the same arena. Adds the key if it
 * is missing and the tables are not frozen. Returns -1 as the functions below. */
int32_t pprof_number(struct pprof_tables *tables, struct intern *index, const void *key,
                     size_t size);

/* Return numbers from 0, or -1: no memory, or the item is missing and the tables are frozen. */
int32_t pprof_string(struct pprof_tables *tables, const char *text);
int32_t pprof_read_stack(struct pprof_tables *tables, struct pprof_reading *reading, int32_t index);
/* Makes a stack of one function that has no address. */
int32_t pprof_named_stack(struct pprof_tables *tables, const char *function);

/* Stores the frames of a stack, leaf first, at most `most`, and returns their number. `line` is 0
 * if unknown. `is_inlined` is set for all lines of a location but the last: they are inlined into
 * it. */
struct pprof_frame {
    const char *function;
    const char *file;
    int64_t line;
    uint64_t address;
    bool is_inlined;
};
size_t pprof_stack_frames(const struct pprof_tables *tables, int32_t stack,
                          struct pprof_frame *frames, size_t most);

/* Writes the location ids of a stack as a packed field. */
void pprof_write_stack(const struct pprof_tables *tables, struct wire *wire, unsigned field,
                       int32_t stack);

/* Writes the profile's mappings, locations, functions and strings. */
void pprof_write_tables(const struct pprof_tables *tables, struct wire *wire);

void pprof_tables_free(struct pprof_tables *tables);

#endif
