/* Checks JSON exactly by RFC 8259, in a naive way: our writer must keep to it, and our reader must
 * accept it.
 */
#ifndef OTELPROF_STRICT_JSON_H
#define OTELPROF_STRICT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strict_json {
    bool valid; /* one value, with blanks around it at most; all of it UTF-8 */
    unsigned depth;
    bool one_line; /* no blank or line break outside of strings */
};

/* Checks `size` bytes that need not end in NUL. */
struct strict_json strict_json_look(const uint8_t *text, size_t size);

#endif
