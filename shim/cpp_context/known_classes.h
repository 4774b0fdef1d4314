/* Identifies the class of an object of the program by its table of functions, which leads to the
 * class's name.
 *
 * No field of a C++ object is read before its class is known, so objects of a build with another
 * layout are never read. Results are cached: a repeated query takes a nanosecond.
 */
#ifndef OTELPROF_KNOWN_CLASSES_H
#define OTELPROF_KNOWN_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

/* Lists the classes, stored as 3 bits of an address that is a multiple of 8; 0: not checked yet. */
enum known_class {
    CLASS_OTHER = 1,
    CLASS_CONTEXT_POINTER, /* nostd::shared_ptr of a context's entry */
    CLASS_SPAN_POINTER,    /* nostd::shared_ptr<trace::Span> */
    CLASS_STATE_POINTER,   /* nostd::shared_ptr<trace::TraceState> */
    CLASS_COUNTED,         /* the reference counts that libstdc++'s shared_ptr keeps */
    CLASS_WITH_CONTEXT,    /* the table has all functions up to Span::GetContext() */
    CLASS_COUNTED_LIST,    /* as CLASS_COUNTED, of a context's entries */
};

enum { ABI_FIRST = 1, ABI_LAST = 2, ABI_COUNT = 2 }; /* versions of the API's ABI */

/* Returns the index in a span's table of the function that returns its context. */
static inline unsigned span_context_slot(unsigned abi) {
    return abi == 1 ? 10 : 12; /* AddLink() and AddLinks() came with the second ABI */
}

/* Returns the class of an object whose first word is `table`, by its name in that ABI; CLASS_OTHER:
 * it has none of the names, or cannot be read. Never returns CLASS_WITH_CONTEXT. Context: the
 * program's threads. Async-signal-safe: yes. */
enum known_class known_class_of(uintptr_t table, unsigned abi);

/* Returns whether the table has all of a span's functions up to the one behind GetContext(), each
 * of them in code. Context: as known_class_of(). */
bool known_class_has_context(uintptr_t table, unsigned abi);

/* Prevents further calls of that table's GetContext(), whose result was not as expected. Context:
 * as known_class_of(). */
void known_class_refuse(uintptr_t table, unsigned abi);

/* Clears the cache, because objects were loaded or unloaded, and another class may now be at a
 * cached address. Context: the helper. */
void known_classes_forget(void);

#endif
