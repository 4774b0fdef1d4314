#include "system_files.h"

#include "process_file.h"
#include "text_numbers.h"

#include <string.h>

static const char hex_digits[] = "0123456789abcdef";

/* Copies `length` bytes as far as they fit. Returns false if there are none. */
static bool copy_result(char *to, size_t size, const char *from, size_t length) {
    const size_t kept = length < size - 1 ? length : size - 1;
    memcpy(to, from, kept);
    to[kept] = 0;
    return kept != 0;
}

/* Returns the next line; NULL if this is the last. */
static const char *line_behind(const char *line) {
    const char *const end = strchr(line, '\n');
    return end && end[1] ? end + 1 : NULL;
}

/* --- the container --- */

/* Finds the last run of exactly 64 hexadecimal digits within `length` bytes of `text`. */
static bool last_id(const char *text, size_t length, char id[static CONTAINER_ID_BYTES]) {
    const char *found = NULL;
    for (size_t at = 0; at < length;) {
        const size_t run = strspn(text + at, hex_digits);
        if (run == 64 && at + run <= length)
            found = text + at;
        at += run ? run : 1;
    }
    return copy_result(id, CONTAINER_ID_BYTES, found ? found : "", found ? 64 : 0);
}

bool container_of_cgroup(const char *text, char id[static CONTAINER_ID_BYTES]) {
    bool found = false;
    for (const char *line = text; line && !found; line = line_behind(line))
        found = last_id(line, strcspn(line, "\n"), id);
    if (!found)
        id[0] = 0;
    return found;
}

/* Returns field `number` (from 0) of a line of mountinfo, and its length. */
static const char *field_of(const char *line, int number, size_t *length) {
    for (; number > 0 && *line && *line != '\n'; number--) {
        line += strcspn(line, " \n");
        line += *line == ' ';
    }
    *length = strcspn(line, " \n");
    return line;
}

static bool matches_one_of(const char *text, size_t length, const char *const *words) {
    for (; *words; words++)
        if (strlen(*words) == length && memcmp(text, *words, length) == 0)
            return true;
    return false;
}

static bool container_of_mount(const char *line, char id[static CONTAINER_ID_BYTES]) {
    static const char *const private_files[] = {"/etc/hostname", "/etc/hosts", "/etc/resolv.conf",
                                                "/run/.containerenv", NULL};
    static const char *const folders[] = {"/containers/", "/overlay-containers/"};
    size_t length;
    const char *const point = field_of(line, 4, &length);
    if (!matches_one_of(point, length, private_files))
        return false;
    const char *const root = field_of(line, 3, &length);
    for (size_t i = 0; i < 2; i++) {
        const char *const folder = memmem(root, length, folders[i], strlen(folders[i]));
        const char *const name = folder ? folder + strlen(folders[i]) : NULL;
        if (name && strspn(name, hex_digits) == 64 && name[64] == '/')
            return copy_result(id, CONTAINER_ID_BYTES, name, 64);
    }
    return false;
}

bool container_of_mounts(const char *text, char id[static CONTAINER_ID_BYTES]) {
    bool found = false;
    id[0] = 0;
    if (strstr(text, "/kubelet/pods/"))
        return false;
    for (const char *line = text; line && !found; line = line_behind(line))
        found = container_of_mount(line, id);
    return found;
}

/* --- the system and the user --- */

static bool unquoted(const char *text, size_t length, char *value, size_t size) {
    const char quote = length >= 2 && (*text == '"' || *text == '\'') ? *text : 0;
    if (quote && text[length - 1] != quote)
        return false;
    if (quote) {
        text++;
        length -= 2;
    }
    size_t kept = 0;
    for (size_t i = 0; i < length && kept < size - 1; i++) {
        if (text[i] == '\\' && quote != '\'' && i + 1 < length)
            i++;
        value[kept++] = text[i];
    }
    value[kept] = 0;
    return kept != 0;
}

bool os_release_value(const char *text, const char *key, char *value, size_t size) {
    const char *const found = process_text_value(text, key, '=');
    value[0] = 0;
    return found && unquoted(found, strcspn(found, "\n"), value, size);
}

/* Returns the text after the second colon of "name:password:number:..."; NULL for another form. */
static const char *number_in(const char *line) {
    const size_t name = strcspn(line, ":\n");
    if (line[name] != ':')
        return NULL;
    const char *const second = line + name + 1 + strcspn(line + name + 1, ":\n");
    return *second == ':' ? second + 1 : NULL;
}

bool passwd_name(const char *text, unsigned user, char *name, size_t size) {
    name[0] = 0;
    for (const char *line = text; line; line = line_behind(line)) {
        const char *const number = number_in(line);
        uint64_t found;
        const char *const end = number ? number_read(number, 10, &found) : NULL;
        if (end && *end == ':' && found == user)
            return copy_result(name, size, line, strcspn(line, ":"));
    }
    return false;
}

bool machine_id(const char *text, char id[static 33]) {
    const bool sound = strspn(text, hex_digits) == 32 && (text[32] == '\n' || text[32] == 0);
    return copy_result(id, 33, text, sound ? 32 : 0);
}
