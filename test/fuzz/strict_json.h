/* JSON exactly as RFC 8259 has it, the naive way: what our writer must keep to, and what our reader
 * must take.
 */
#ifndef OTELPROF_STRICT_JSON_H
#define OTELPROF_STRICT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strict_json {
    bool valid; /* one value, and nothing but blanks around it; all of it UTF-8 */
    unsigned depth;
    bool one_line; /* no blank or line break outside of strings */
};

/* `size` bytes that need not end in NUL. */
struct strict_json strict_json_look(const uint8_t *text, size_t size);

#endif
