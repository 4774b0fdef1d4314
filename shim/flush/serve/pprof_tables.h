/* The tables of one profile in pprof's format, in which nothing is listed twice: strings,
 * functions, mappings, locations, stacks. They outlive the requests whose dictionaries are read
 * into them. Context: flush. */
#ifndef OTELPROF_PPROF_TABLES_H
#define OTELPROF_PPROF_TABLES_H

#include "arena.h"
#include "intern.h"
#include "wire.h"

#include <profiles.pb-c.h>
#include <stdint.h>

typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary otlp_dictionary;

struct pprof_tables {
    struct arena arena;
    bool frozen;           /* nothing is added: what is not there has the number -1 */
    struct intern strings; /* 0: "" */
    struct intern mappings;
    struct intern functions;
    struct intern locations;
    struct intern lines; /* lists of them: what functions a location is of */
    struct intern stacks;
    int32_t *lines_of; /* by location; -1: none */
    int32_t lined;     /* room for so many */
};

/* A request's dictionary that is being read: which of its items are in the tables already. */
struct pprof_reading {
    const otlp_dictionary *dictionary;
    int32_t *locations; /* plus one; 0: not yet */
    int32_t *stacks;
};

/* false: no memory. Close it in any case. */
bool pprof_reading_open(struct pprof_reading *reading, const otlp_dictionary *dictionary);
void pprof_reading_close(struct pprof_reading *reading);

/* Text of the dictionary; "" for what it does not have. */
const char *pprof_text(const struct pprof_reading *reading, int32_t string);

/* The number of a key in one of the tables, or in another index of the same arena. */
int32_t pprof_number(struct pprof_tables *tables, struct intern *index, const void *key,
                     size_t size);

/* Numbers from 0; -1: no memory, the dictionary has no such thing, or the tables are frozen. */
int32_t pprof_string(struct pprof_tables *tables, const char *text);
int32_t pprof_stack(struct pprof_tables *tables, struct pprof_reading *reading, int32_t stack);
/* A stack of one function without a place. */
int32_t pprof_named_stack(struct pprof_tables *tables, const char *function);

/* How many frames it has; the name of the function of one, which is inlined into the others of its
 * location where it is not the last; its file, and line (0: not known). Leaf first. */
struct pprof_frame {
    const char *function;
    const char *file;
    int64_t line;
    uint64_t address;
    bool is_inlined;
};
size_t pprof_stack_frames(const struct pprof_tables *tables, int32_t stack,
                          struct pprof_frame *frames, size_t most);

/* Location ids of a stack, as a packed field. */
void pprof_write_stack(const struct pprof_tables *tables, struct wire *wire, unsigned field,
                       int32_t stack);

/* Everything but samples. */
void pprof_write_tables(const struct pprof_tables *tables, struct wire *wire);

void pprof_tables_free(struct pprof_tables *tables);

#endif
