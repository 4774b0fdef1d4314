/* Of which class an object of the program is: by its table of functions, whose class has a name.
 *
 * Nothing of a C++ object is read before that is known, so that a build that lays them out in
 * another way is left alone, not misread. What was found is kept: to ask again takes a nanosecond.
 */
#ifndef OTELPROF_KNOWN_CLASSES_H
#define OTELPROF_KNOWN_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

/* Of 3 bits, in an address that is a multiple of 8; 0: not looked at. */
enum known_class {
    CLASS_OTHER = 1,
    CLASS_CONTEXT_POINTER, /* nostd::shared_ptr of a context's entry */
    CLASS_SPAN_POINTER,    /* nostd::shared_ptr<trace::Span> */
    CLASS_STATE_POINTER,   /* nostd::shared_ptr<trace::TraceState> */
    CLASS_COUNTED,         /* what libstdc++'s shared_ptr counts its owners in */
    CLASS_WITH_CONTEXT,    /* its functions reach as far as Span::GetContext() */
};

enum { ABI_FIRST = 1, ABI_LAST = 2, ABI_COUNT = 2 }; /* of the API */

/* Which function of its table gives a span's context. */
static inline unsigned span_context_slot(unsigned abi) {
    return abi == 1 ? 10 : 12; /* AddLink() and AddLinks() came with the second ABI */
}

/* Of an object whose first word is `table`: whether its class has one of the names above, of that
 * ABI. CLASS_WITH_CONTEXT is not among the answers. Context: the program's threads.
 * Async-signal-safe: yes. */
enum known_class known_class_of(uintptr_t table, unsigned abi);

/* Whether the table has all of a span's functions up to the one behind GetContext(), each of them
 * in code. Context: as above. */
bool known_class_has_context(uintptr_t table, unsigned abi);

/* What that table's GetContext() gives is not as expected: it is not asked again.
 * Context: as above. */
void known_class_refuse(uintptr_t table, unsigned abi);

/* Objects came or went: another may be where one was. Context: the helper. */
void known_classes_forget(void);

#endif
