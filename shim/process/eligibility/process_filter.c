#include "process_filter.h"

#include "glob.h"
#include "program_path.h"

#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

static struct glob glob_of(const char *text) {
    return (struct glob){text, strlen(text)};
}

/* --- the user's globs --- */

static bool fits_name(struct glob glob, const char *path) {
    const bool whole = memchr(glob.text, '/', glob.size) != NULL;
    return *path && glob_matches(glob, whole ? path : glob_base_name(path));
}

static bool fits(struct glob glob, const struct program *program) {
    return fits_name(glob, program->file) || fits_name(glob, program->started_by);
}

/* --- the built-in lists --- */

static bool is_in_system_folder(const char *path) {
    static const char *const folders[] = {"/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/"};
    const size_t folder = (size_t)(glob_base_name(path) - path);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strlen(folders[i]) == folder && memcmp(path, folders[i], folder) == 0)
            return true;
    return false;
}

static bool is_in_excluded_folder(const char *path) {
    static const char *const folders[] = {
#define FOLDER(path) path,
#include "default_excludes.def"
    };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return true;
    return false;
}

/* Returns true if the built-in list names `file`: the file that runs, not the script, because a
 * service in a script named `users` is not the command `users`. The names are one string, with an
 * empty name at the end, because pointers to them would be relocated in each process. */
static bool is_excluded_by_default(const char *file) {
    static const char anywhere[] =
#define ANYWHERE(name) name "\0"
#include "default_excludes.def"
        ;
    static const char of_system[] =
#define SYSTEM(name) name "\0"
#include "default_excludes.def"
        ;
    const char *const name = glob_base_name(file);
    if (is_in_excluded_folder(file))
        return true;
    for (const char *glob = anywhere; *glob; glob += strlen(glob) + 1)
        if (glob_matches(glob_of(glob), name))
            return true;
    if (!is_in_system_folder(file))
        return false;
    for (const char *excluded = of_system; *excluded; excluded += strlen(excluded) + 1)
        if (strcmp(excluded, name) == 0)
            return true;
    return false;
}

static bool is_never_profiled(const struct program *program) {
    static const char never[] =
#define NEVER(glob) glob "\0"
#include "default_excludes.def"
        ;
    const bool script = is_in_system_folder(program->started_by);
    for (const char *glob = never; glob < never + sizeof never - 1; glob += strlen(glob) + 1)
        if (fits_name(glob_of(glob), program->file) ||
            (script && fits_name(glob_of(glob), program->started_by)))
            return true;
    return false;
}

/* --- both lists --- */

static bool is_included(const struct program *program, const char *include) {
    struct glob glob;
    while (glob_next(&include, &glob))
        if (fits(glob, program))
            return true;
    return false;
}

enum filter_result process_filter_apply(const struct program *program, const char *include,
                                        const char *exclude) {
    struct glob glob;
    if (is_included(program, include))
        return PROCESS_PROFILED;
    while (glob_next(&exclude, &glob)) {
        if (glob_is_word(glob, "none"))
            continue;
        if (!glob_is_word(glob, "default")) {
            if (fits(glob, program))
                return PROCESS_EXCLUDED;
        } else if (is_excluded_by_default(program->file)) {
            return PROCESS_EXCLUDED_BY_DEFAULT;
        }
    }
    return PROCESS_PROFILED;
}

bool process_filter_has_default(const char *exclude) {
    struct glob glob;
    while (glob_next(&exclude, &glob))
        if (glob_is_word(glob, "default"))
            return true;
    return false;
}

enum filter_result process_filter_apply_host_wide(const struct program *program,
                                                  const char *include, const char *exclude) {
    struct glob glob;
    /* without /proc only the second name is known, which for a shell is the shell's own */
    const struct program known = {*program->file ? program->file : program->started_by,
                                  program->started_by};
    if (!is_included(program, include))
        return PROCESS_NOT_INCLUDED;
    if (is_excluded_by_default(known.file) || is_never_profiled(&known))
        return PROCESS_NEVER_PROFILED;
    while (glob_next(&exclude, &glob))
        if (!glob_is_word(glob, "none") && !glob_is_word(glob, "default") && fits(glob, program))
            return PROCESS_EXCLUDED;
    return PROCESS_PROFILED;
}

/* --- this process --- */

static const char *started_by(void) {
    const char *const name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    return name ? name : "";
}

bool process_filter_is_command(void) {
    const char *const name = started_by();
    return (is_in_system_folder(name) || is_in_excluded_folder(name)) &&
           is_excluded_by_default(name);
}

static const char *executable(char *buffer, size_t size) {
    (void)program_path(buffer, size);
    return buffer;
}

enum filter_result process_filter_this_process(const char *include, const char *exclude,
                                               struct program *program, char *buffer, size_t size) {
    *program = (struct program){"", started_by()};
    if (!*include && strcmp(exclude, "default") == 0 && process_filter_is_command())
        return PROCESS_EXCLUDED_BY_DEFAULT;
    program->file = executable(buffer, size);
    return process_filter_apply(program, include, exclude);
}

enum filter_result process_filter_this_process_host_wide(const char *include, const char *exclude,
                                                         struct program *program, char *buffer,
                                                         size_t size) {
    *program = (struct program){"", started_by()};
    if (!*include)
        return PROCESS_NOT_INCLUDED;
    program->file = executable(buffer, size);
    return process_filter_apply_host_wide(program, include, exclude);
}
