#include "redact.h"

#include "glob.h"

#include <string.h>

static bool fits_one_of(const char *globs, const char *text) {
    return *text && glob_list_matches(globs, text);
}

static bool fits_path(const char *globs, const char *path) {
    return fits_one_of(globs, path) || fits_one_of(globs, glob_base_name(path));
}

/* Detects a mangled name (Itanium's or Rust's prefix) without a readable form. */
static bool is_unreadable(const struct symbol_line *line) {
    const bool mangled =
        strncmp(line->system_name, "_Z", 2) == 0 || strncmp(line->system_name, "_R", 2) == 0;
    return mangled && strcmp(line->function, line->system_name) == 0;
}

const char *redact_name(const char *globs, const char *name) {
    return fits_one_of(globs, name) ? REDACTED : name;
}

const char *redact_path(const char *globs, const char *path) {
    return fits_path(globs, path) ? REDACTED : path;
}

const char *redact_label(const char *globs, const char *key, const char *value) {
    return *value && fits_one_of(globs, key) ? REDACTED : redact_name(globs, value);
}

void redact_line(const char *globs, struct symbol_line *line) {
    if (!*globs)
        return;
    if (is_unreadable(line) || fits_one_of(globs, line->function) ||
        fits_one_of(globs, line->system_name)) {
        line->function = REDACTED;
        line->system_name = *line->system_name ? REDACTED : "";
    }
    line->file = redact_path(globs, line->file);
}
