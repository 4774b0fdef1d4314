#include "redact.h"

#include "glob.h"
#include "symbolize/demangle.h"

#include <string.h>

static bool fits_one_of(const char *globs, const char *text) {
    return *text && glob_list_matches(globs, text);
}

const char *redact_name(const char *globs, const char *name) {
    return fits_one_of(globs, name) ? REDACTED : name;
}

const char *redact_path(const char *globs, const char *path) {
    const bool hidden = fits_one_of(globs, path) || fits_one_of(globs, glob_base_name(path));
    return hidden ? REDACTED : path;
}

const char *redact_label(const char *globs, const char *key, const char *value) {
    return *value && fits_one_of(globs, key) ? REDACTED : redact_name(globs, value);
}

void redact_line(const char *globs, struct symbol_line *line) {
    if (!*globs)
        return;
    const bool unreadable =
        is_mangled(line->system_name) && strcmp(line->function, line->system_name) == 0;
    if (unreadable || fits_one_of(globs, line->function) || fits_one_of(globs, line->system_name)) {
        line->function = REDACTED;
        line->system_name = *line->system_name ? REDACTED : "";
    }
    line->file = redact_path(globs, line->file);
}
