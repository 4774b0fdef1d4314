/* Where the libraries' code lies in which work may be left at any instruction: libotelprof-flush.so
 * itself, in which libiberty is, libelf, libdw, what inflates for them, and libyaml. None of them
 * holds a lock that anybody else wants, and what they were at is never touched again. Context:
 * flush, at start, under the quiesce lock: it asks the loader.
 */
#ifndef OTELPROF_FOREIGN_CODE_H
#define OTELPROF_FOREIGN_CODE_H

#include "harvest.h"

enum { MAX_FOREIGN_CODE = 16 };

struct foreign_code {
    size_t count;
    struct code_range ranges[MAX_FOREIGN_CODE];
};

void foreign_code_find(struct foreign_code *code);

#endif
