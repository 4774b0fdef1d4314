/* Interprets a plain YAML scalar by the core schema of YAML 1.2: null, true, 12, 0x1f, 1.5e3 or a
 * text. It does not depend on the program's locale.
 * Context: flush. */
#ifndef OTELPROF_SCALAR_H
#define OTELPROF_SCALAR_H

#include <stdbool.h>
#include <stdint.h>

enum scalar_type { SCALAR_NULL, SCALAR_BOOL, SCALAR_INT, SCALAR_DOUBLE, SCALAR_TEXT };

struct scalar {
    enum scalar_type type;
    bool truth;      /* if SCALAR_BOOL */
    int64_t integer; /* if SCALAR_INT */
    double real;     /* if SCALAR_DOUBLE or SCALAR_INT */
};

/* Returns the type and value of `text`. An integer beyond 64 bits becomes SCALAR_DOUBLE. */
struct scalar scalar_parse(const char *text);

#endif
