/* Gives each function of Python that a frame names a number.
 *
 * A frame in a stack is such a number and a position in the function (frame.h). A code object's
 * contents (its qualified name, its file, its first line, its table of lines) are copied when it is
 * first seen, on the thread that runs it: they are not read once it is gone. Functions are
 * distinguished by these contents, not by addresses: a new function at the address of a deleted one
 * gets a number of its own, and code that is compiled again keeps its number.
 *
 * A number is the place of a record, which never changes. Records are appended without locks, and
 * found in two steps: first by the addresses of the code object and its parts, whose present
 * contents are then compared with the record; else by a hash of the contents. 16 MiB of addresses,
 * backed by memory as they are filled, hold some 50,000 functions; after that no new function gets
 * a number.
 */
#ifndef OTELPROF_PYTHON_FUNCTIONS_H
#define OTELPROF_PYTHON_FUNCTIONS_H

#include "frame.h"
#include "python_offsets.h"
#include "python_reader.h"

#include <stdbool.h>
#include <stdint.h>

struct python_functions;

enum {
    PYTHON_FUNCTIONS_BYTES = 16 << 20, /* size of the range of addresses for records */
    /* the position in the function is not known (a value of frame.h) */
    PYTHON_POSITION_UNKNOWN = 0xffffff,
    PYTHON_NAME_CHARACTERS = 255, /* a longer name is cut at its end */
    PYTHON_FILE_CHARACTERS = 255, /* a longer path is cut at its beginning */
    /* a longer table of lines is cut at its end: 1 in 2,000 of the functions of 3.11's library,
     * most of them module bodies, has instructions whose line is then not known */
    PYTHON_LINES_BYTES = 8192,
};

/* Returns an empty table in the profiler's memory; NULL: the kernel refuses memory. Context: calm,
 * or the helper; once, when an interpreter was found. */
struct python_functions *python_functions_new(void);

/* Empties the table in a forked child, where the frames that refer to its records are dropped, too.
 * `functions` may be NULL. Context: fork handler. */
void python_functions_after_fork(struct python_functions *functions);

/* Returns the number of the code object at `code`, whose type the caller has checked; 0: it cannot
 * be read, or there is no room for it. Cost: 0.1 µs for a known function, 1 to 3 µs for a new one;
 * ten times as much if another thread runs it. Context: any. Async-signal-safe: yes. */
uint32_t python_function(struct python_functions *functions, const struct python_offsets *offsets,
                         struct python_reader *reader, uintptr_t code);

/* Returns the function's names and line; `position` is an offset in code units, or
 * PYTHON_POSITION_UNKNOWN. Returns false if the number is unknown. The strings are UTF-8, and valid
 * until the next call. Context: the helper. */
bool python_function_name(struct python_functions *functions, uint32_t number, uint32_t position,
                          struct named_frame *named);

/* Holds a text of an interpreter's: see python_text(). */
struct python_part {
    const uint8_t *bytes;
    uint32_t size;
    uint32_t character;
};
struct python_texts {
    struct python_part name;
    struct python_part file;
    int line;
    int start_line;
};

/* Does the same as python_function_name(), but leaves the texts in the interpreter's encoding, and
 * they are valid for ever. Context: any. Async-signal-safe: yes. */
bool python_function_texts(struct python_functions *functions, uint32_t number, uint32_t position,
                           struct python_texts *texts);

/* Writes `size` bytes of characters of `character` bytes each (PEP 393; 0: the text is empty), at
 * any address, as UTF-8: at most 4 bytes a character, and a NUL. Characters that UTF-8 cannot
 * express (half of a surrogate pair, by which Python represents a byte of a file name) and NULs
 * become U+FFFD. Context: any. Async-signal-safe: yes. */
void python_text(const uint8_t *bytes, uint32_t size, uint32_t character, char *text);

#endif
