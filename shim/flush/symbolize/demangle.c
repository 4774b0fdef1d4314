#include "demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A mangled name refers back to its own parts: written out, 300 bytes can become a gigabyte. The
 * longer form is never finished; who needs it has the mangled name. */
enum { MAX_MANGLED = 2048, MAX_READABLE = 16 << 10 };

struct readable {
    jmp_buf too_long;
    size_t length;
    char text[MAX_READABLE];
};

/* libiberty offers no way to stop but to leave: its callback forms keep their state on the stack,
 * so nothing is lost. */
static void append(const char *text, size_t size, void *arg) {
    struct readable *const readable = arg;
    if (size >= MAX_READABLE - readable->length)
        longjmp(readable->too_long, 1);
    if (size) /* an empty text may have no address */
        memcpy(readable->text + readable->length, text, size);
    readable->length += size;
}

static bool write_out(struct readable *readable, const char *name) {
    if (setjmp(readable->too_long) != 0)
        return false;
    readable->length = 0;
    if (rust_demangle_callback(name, DMGL_NO_OPTS, append, readable))
        return true;
    readable->length = 0;
    return cplus_demangle_v3_callback(name, DMGL_ANSI, append, readable);
}

char *demangle(const char *name) {
    if (name[0] != '_' || strnlen(name, MAX_MANGLED) == MAX_MANGLED)
        return NULL;
    if (name[1] != 'Z' && name[1] != 'R')
        return NULL;
    struct readable *const readable = malloc(sizeof *readable);
    if (!readable)
        return NULL;
    char *const text = write_out(readable, name) ? strndup(readable->text, readable->length) : NULL;
    free(readable);
    return text;
}
