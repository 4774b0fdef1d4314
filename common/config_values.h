/* From the text of one variable to its value: small pure parsers, one per kind of options.def.
 *
 * All return false for a text that is not of the kind; the caller warns and keeps the default. No
 * libc call here reads the locale.
 * Context: calm. Async-signal-safe: yes.
 */
#ifndef OTELPROF_CONFIG_VALUES_H
#define OTELPROF_CONFIG_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ASCII only; the variables' words have no other letters. */
bool text_equals_ignoring_case(const char *text, const char *word);

/* The same of the first `size` bytes of `text`, which hold no NUL. */
bool text_is_word(const char *text, size_t size, const char *word);

/* Decimal digits alone, without sign, within [low, high]. */
bool parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *value);

/* Up to 100, with a point and up to four digits behind it, as millionths of the whole. "none", and
 * 0: UINT64_MAX. */
bool parse_overhead(const char *text, uint64_t *millionths);

/* The index of `text`, in any case, among `count` words. */
bool parse_word(const char *text, const char *const *words, size_t count, unsigned *index);

/* An element of a comma-separated list, without the blanks around it: its size. `*at` is where it
 * begins; `*rest` goes behind its comma, NULL: it was the last. */
size_t list_next(const char **rest, const char **at);

/* Comma-separated words, blanks around them allowed, as a set of bits: word i is bit i. An empty
 * element or an unknown word spoils the whole. */
bool parse_set(const char *text, const char *const *words, size_t count, unsigned *bits);

/* A signal that a program may be interrupted by: "SIGPROF", "SIGRTMIN+n", "SIGRTMAX-n", or a
 * number; not the ones that report a fault or an abort, end or stop a process, or are libc's own.
 */
bool parse_signal(const char *text, uint64_t *number);

/* http:// or https:// and a host. `*path` is set to where the path begins ("" if there is none). */
bool parse_url(const char *text, const char **path);

#endif
