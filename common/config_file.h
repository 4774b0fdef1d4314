/* A configuration file: the environment's names and values as lines of a file.
 *
 * It is what systemd's EnvironmentFile= takes of ordinary lines, and refuses what that would give
 * another meaning:
 * - a line is KEY=VALUE; blank lines, and those that begin with # or ;, say nothing. Lines end in a
 *   line feed, or a carriage return and a line feed;
 * - KEY is a name of options.def, in one of its two forms, or OTEL_CONFIG_FILE;
 * - blanks and tabs before and behind KEY and VALUE are no part of them;
 * - a VALUE in a pair of quotes, single or double, is what stands between them, # and blanks among
 *   it. No quote of its own kind can be in it, and nothing may follow it;
 * - a backslash is itself, and nothing is replaced. A line that ends in one is refused: it is not
 *   continued;
 * - a key that is there twice counts as its last.
 * A line that is not taken is one warning, which names the file and the line; its value is never
 * repeated. The parser is a pure function over a text that it may write to.
 */
#ifndef OTELPROF_CONFIG_FILE_H
#define OTELPROF_CONFIG_FILE_H

#include "config.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    CONFIG_LINE_MOST = 4096, /* bytes of a line */
    CONFIG_WRONG_MOST = 8,   /* lines of a file that are named; more of them are one warning */
};

/* What the files say, of each file the last line first: "KEY=VALUE" each, in the texts that
 * were parsed. */
struct config_lines {
    const char **entries; /* room for `most` of them */
    size_t count;
    size_t most;
};

/* Adds the lines of `text`, from its end to its beginning; it has `size` bytes and one more that
 * may be written to, to `lines`. `file` is what warnings call it. The text must live as long as the
 * entries. Context: calm. Async-signal-safe: yes. */
void config_file_parse(char *text, size_t size, const char *file, struct config_lines *lines,
                       config_warn *warn, void *arg);

#endif
