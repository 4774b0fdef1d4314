#include "demangle.h"

#include "d_name.h"
#include "functional_names.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Bounds the names: a mangled name refers back to its own parts, so the readable form of 300 bytes
 * can have a gigabyte. A form longer than this limit is not completed; the mangled name is used
 * instead. */
enum { MAX_MANGLED = 2048, MAX_READABLE = 16 << 10 };

struct readable {
    jmp_buf too_long;
    size_t length;
    char text[MAX_READABLE];
};

/* Appends a piece. If the form is too long, stops libiberty by a jump, because it has no other way
 * to stop; no memory leaks, because its callback forms keep their state on the stack. */
static void demangle_append(const char *text, size_t size, void *arg) {
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
    if (rust_demangle_callback(name, DMGL_NO_OPTS, demangle_append, readable))
        return true;
    readable->length = 0;
    return cplus_demangle_v3_callback(name, DMGL_ANSI, demangle_append, readable);
}

/* Returns true if libiberty can make the name readable. */
static bool is_cpp_or_rust(const char *name) {
    return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

static bool is_decoded(const char *name, struct name_text *readable) {
    return d_name(name, readable) || ocaml_name(name, readable) || haskell_name(name, readable);
}

bool is_mangled(const char *name) {
    struct name_text readable;
    return is_cpp_or_rust(name) || is_decoded(name, &readable);
}

char *demangle(const char *name) {
    struct name_text decoded;
    if (strnlen(name, MAX_MANGLED) == MAX_MANGLED)
        return NULL;
    if (!is_cpp_or_rust(name))
        return is_decoded(name, &decoded) ? strndup(decoded.text, decoded.length) : NULL;
    struct readable *const readable = malloc(sizeof *readable);
    if (!readable)
        return NULL;
    char *const text = write_out(readable, name) ? strndup(readable->text, readable->length) : NULL;
    free(readable);
    return text;
}

struct demangling {
    const char *name;
    char *text;
};

static void demangle_run(void *arg) {
    struct demangling *const demangling = arg;
    demangling->text = demangle(demangling->name);
}

bool demangle_within(memory_guard *guarded, const struct work_budget *budget, const char *name,
                     char **text) {
    struct demangling demangling = {.name = name};
    const bool done = guarded(demangle_run, &demangling, budget);
    *text = done ? demangling.text : NULL;
    return done;
}
