/* What a plain scalar of YAML means, by the core schema of YAML 1.2: null, true, 12, 0x1f, 1.5e3 or
 * a text. Never by the program's locale. Context: flush.
 */
#ifndef OTELPROF_SCALAR_H
#define OTELPROF_SCALAR_H

#include <stdbool.h>
#include <stdint.h>

enum scalar_type { SCALAR_NULL, SCALAR_BOOL, SCALAR_INT, SCALAR_DOUBLE, SCALAR_TEXT };

struct scalar {
    enum scalar_type type;
    bool truth;      /* SCALAR_BOOL */
    int64_t integer; /* SCALAR_INT */
    double real;     /* SCALAR_DOUBLE, SCALAR_INT */
};

/* A whole number beyond 64 bits is a SCALAR_DOUBLE. */
struct scalar scalar_of(const char *text);

#endif
