/* Parses a configuration file, whose lines have the names and values of environment variables.
 *
 * The parser accepts the ordinary lines of systemd's EnvironmentFile=, and refuses lines to which
 * systemd would give another meaning:
 * - a line is KEY=VALUE; blank lines, and lines that begin with # or ;, are skipped. Lines end in a
 *   line feed, or a carriage return and a line feed;
 * - KEY is a name of options.def, in one of its two forms, or OTEL_CONFIG_FILE;
 * - blanks and tabs before and behind KEY and VALUE are ignored;
 * - a VALUE in a pair of quotes, single or double, is the text between them, which may hold # and
 *   blanks. It cannot contain a quote of its own kind, and nothing may follow it;
 * - a backslash is an ordinary character, and nothing is replaced. A line that ends in a backslash
 *   is refused: it is not continued;
 * - if a key appears twice, the last one counts.
 * A warning for each refused line, up to CONFIG_WRONG_MOST of a file, names the file and the line,
 * and never repeats the value. The parser is a pure function over a text that it may write to.
 */
#ifndef OTELPROF_CONFIG_FILE_H
#define OTELPROF_CONFIG_FILE_H

#include "config.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    CONFIG_LINE_MOST = 4096, /* longest line, in bytes */
    /* so many wrong lines of a file get a warning each; all further lines share one warning */
    CONFIG_WRONG_MOST = 8,
};

/* Holds the settings of all files, in the order of the files, the last line of each file first. The
 * entries are "KEY=VALUE" strings within the texts that were parsed. */
struct config_lines {
    const char **entries; /* room for `most` entries */
    size_t count;
    size_t most;
};

/* Adds the lines of `text`, from its end to its beginning, to `lines`. The text has `size` bytes,
 * and one more byte that may be written to. `file` is its name in warnings. The text must live as
 * long as the entries. Context: calm. Async-signal-safe: yes. */
void config_file_parse(char *text, size_t size, const char *file, struct config_lines *lines,
                       config_warn *warn, void *arg);

#endif
