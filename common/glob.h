/* Matches shell patterns, and comma-separated lists of them, by which the user names programs,
 * functions and files.
 *
 * Patterns work as in fnmatch() without flags: `*` matches any text, slashes and leading dots
 * included, `?` one byte, `[a-z]` and `[!a-z]` one byte of a set; a backslash takes the next byte
 * literally; an unclosed `[` matches itself. There are no classes ([:alpha:]), equivalents or
 * collating symbols. fnmatch() itself is not used, because it reads the application's locale. In a
 * UTF-8 locale it fails on a text that is not UTF-8, as a symbol may be, and a name that should be
 * hidden would be shown. It may also allocate. The time is at most the product of both lengths; no
 * function recurses. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_GLOB_H
#define OTELPROF_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Holds a part of a list, without a terminating NUL. */
struct glob {
    const char *text;
    size_t size;
};

/* Returns whether the whole of `text` matches `glob`. */
bool glob_matches(struct glob glob, const char *text);

/* Removes the first element from `*list`, and stores it without the blanks around it. A comma
 * always separates elements; `?` matches a comma in a name. Skips empty elements. Returns false if
 * none is left. */
bool glob_next(const char **list, struct glob *element);

/* Returns whether the whole of `text` matches one element of a list. */
bool glob_list_matches(const char *list, const char *text);

/* Returns whether `glob` is the word `word`, compared without case, as words of other variables
 * are. */
bool glob_is_word(struct glob glob, const char *word);

/* Returns the part of `path` behind its last slash. */
const char *glob_base_name(const char *path);

#endif
