/* Python's strings as UTF-8: their characters have one, two or four bytes each (PEP 393). */
#ifndef OTELPROF_PYTHON_TEXT_H
#define OTELPROF_PYTHON_TEXT_H

#include <stdint.h>

/* `size` bytes of characters of `character` bytes each (0: there are none), at any address, as a
 * text of at most 4 bytes a character and a NUL. Characters that UTF-8 cannot express (a half of a
 * surrogate pair, which stands for a byte of a file name) and NULs become U+FFFD. Context: any.
 * Async-signal-safe: yes. */
void python_text(const uint8_t *bytes, uint32_t size, uint32_t character, char *text);

#endif
