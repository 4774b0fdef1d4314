/* Tests finding the program's file by the name that was given to exec. */
#include "unit.h"

#include "started_file.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FOUND = 40, NOT_FOUND = 41, FAILED = 42 };

static int copy_file(const char *from, const char *to) {
    char command[3 * PATH_MAX];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    return system(command);
}

/* Runs in the copy: replaces its own file by `replacement`, unless this is "", and then searches
 * for its file. */
static int look(const char *own, const char *replacement) {
    char path[PATH_MAX];
    struct stat found;
    struct stat running;
    if (*replacement && (unlink(own) != 0 || copy_file(replacement, own) != 0))
        return FAILED;
    if (!started_file_path(path, sizeof path))
        return path[0] ? FAILED : NOT_FOUND;
    const bool is_same = stat(path, &found) == 0 && stat("/proc/self/exe", &running) == 0 &&
                         found.st_ino == running.st_ino && found.st_dev == running.st_dev;
    return path[0] == '/' && is_same ? FOUND : FAILED;
}

/* Runs a copy of this program in a folder of its own, by this name; "/": by its whole path. Returns
 * its exit status. */
static int run_copy(const char *name, const char *replacement) {
    char folder[] = "/tmp/otelprof-started-XXXXXX";
    char copy[64];
    char own[64];
    int status = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(copy, sizeof copy, "%s/copy", folder);
    snprintf(own, sizeof own, "/proc/%d/exe", (int)getpid());
    assert_int_equal(copy_file(own, copy), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (chdir(folder) == 0)
            execl(*name == '/' ? copy : name, "other", copy, replacement, NULL);
        _exit(FAILED);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(copy);
    rmdir(folder);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void an_absolute_name_is_found(void **state) {
    (void)state;
    assert_int_equal(run_copy("/", ""), FOUND);
}

static void a_relative_name_is_found(void **state) {
    (void)state;
    assert_int_equal(run_copy("./copy", ""), FOUND);
    assert_int_equal(run_copy("copy", ""), FOUND);
}

/* Replaces the file, as an upgrade does, or as for a script, whose name the kernel passes. */
static void another_file_of_that_name_is_refused(void **state) {
    (void)state;
    assert_int_equal(run_copy("/", "/bin/true"), NOT_FOUND);
    assert_int_equal(run_copy("/", "/etc/passwd"), NOT_FOUND);
}

static void a_path_that_does_not_fit_is_refused(void **state) {
    (void)state;
    char path[2];
    assert_int_equal(started_file_path(path, sizeof path), 0);
    assert_int_equal(path[0], 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_absolute_name_is_found),
        cmocka_unit_test(a_relative_name_is_found),
        cmocka_unit_test(another_file_of_that_name_is_refused),
        cmocka_unit_test(a_path_that_does_not_fit_is_refused),
    };
    if (argc == 3)
        return look(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
