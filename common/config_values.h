/* Parses the text of one variable: small pure functions, one per kind of options.def.
 *
 * The parsers return false for a text that is not of the kind, and their result may then be
 * changed; the caller warns and takes another value. No libc call here reads the locale. Context:
 * calm. Async-signal-safe: yes.
 */
#ifndef OTELPROF_CONFIG_VALUES_H
#define OTELPROF_CONFIG_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if the two are equal. Ignores the case of ASCII letters only: the variables' words
 * have no others. */
bool text_equals_ignoring_case(const char *text, const char *word);

/* Returns true if the first `size` bytes of `text` are `word`, ignoring case. */
bool text_is_word(const char *text, size_t size, const char *word);

/* Accepts decimal digits alone, without sign, within [low, high]. */
bool parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *value);

/* Accepts a percentage up to 100, which may have a point and one to four digits after it, and
 * stores it in millionths of the whole. "none" and 0 are stored as UINT64_MAX. */
bool parse_overhead(const char *text, uint64_t *millionths);

/* Stores the index of `text` among `count` words, compared without case. */
bool parse_word(const char *text, const char *const *words, size_t count, unsigned *index);

/* Finds the next element of a comma-separated list. Returns its size without the blanks around it,
 * and its beginning in `*at`. Moves `*rest` behind the element's comma; NULL: this was the last
 * element. */
size_t list_next(const char **rest, const char **at);

/* Accepts comma-separated words, blanks around them allowed, as a set of bits: word i is bit i. An
 * empty element or an unknown word makes the whole list invalid. */
bool parse_set(const char *text, const char *const *words, size_t count, unsigned *bits);

/* Accepts a signal that may interrupt a program: "SIGPROF", "SIGRTMIN+n", "SIGRTMAX-n", or a
 * number. Refuses signals that report a fault or an abort, that no handler can catch, SIGCHLD, and
 * those that are libc's own. */
bool parse_signal(const char *text, uint64_t *number);

/* Accepts http:// or https:// and a host, without blanks. Sets `*path` to the part behind the host:
 * a path, a query or a fragment, or "" if there is none. */
bool parse_url(const char *text, const char **path);

#endif
