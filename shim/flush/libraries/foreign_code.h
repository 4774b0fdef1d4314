/* Lists the code of libraries in which work may be abandoned at any instruction:
 * libotelprof-flush.so itself (with libiberty), libelf, libdw, their decompressors, and libyaml.
 * None of these libraries holds a lock that another thread needs, and the data of abandoned work is
 * never touched again. Context: flush, at start, under the quiesce lock: it calls the loader.
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
