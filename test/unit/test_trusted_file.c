/* Tests which files are read for names: two users, sticky folders, links, and files that are
 * mapped. Run by root, the test makes the other user's files with chown; by another user those
 * parts are left out. */
#include "unit.h"

#include "files/trusted_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OTHER = 65534 };

static char folder[64]; /* our own folder, inside a sticky one */

static const char *in(const char *name) {
    static char paths[2][2 * PATH_MAX];
    static int next;
    char *const path = paths[next++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name) {
    const int file = open(in(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(file >= 0);
    assert_int_equal(write(file, name, strlen(name)), strlen(name));
    close(file);
}

static void make_folder(const char *name, mode_t mode) {
    assert_int_equal(mkdir(in(name), 0755), 0);
    assert_int_equal(chmod(in(name), mode), 0);
}

static int make_files(void **state) {
    (void)state;
    strcpy(folder, "/tmp/otelprof-trust-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    chmod(folder, 0755);
    write_file("plain");
    make_folder("open", 0777);
    make_folder("sticky", 01777);
    make_folder("group", 0775);
    write_file("open/file");
    write_file("sticky/file");
    write_file("group/file");
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static bool opens(const char *path) {
    const int file = trusted_file_open(path);
    if (file >= 0)
        close(file);
    return file >= 0;
}

static void only_where_others_cannot_write(void **state) {
    (void)state;
    assert_true(opens(in("plain")));
    assert_true(opens("/usr/bin/../bin/env"));
    assert_false(opens(in("open/file")));
    assert_true(opens(in("sticky/file"))); /* our own file: no other user can replace it */
    assert_false(opens(in("none")));
    assert_false(opens(in("")));
    assert_false(opens("plain"));
    assert_false(opens("/dev/null"));
    assert_int_equal(chmod(in("plain"), 0666), 0);
    assert_false(opens(in("plain")));
    assert_int_equal(chmod(in("plain"), 0644), 0);
}

static void a_group_counts_as_others_but_roots(void **state) {
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_true(opens(in("group/file")));
    assert_int_equal(chown(in("group"), 0, OTHER), 0);
    assert_false(opens(in("group/file")));
}

static void files_of_another_user_are_not_opened(void **state) {
    (void)state;
    if (geteuid() != 0)
        skip();
    write_file("sticky/theirs");
    assert_int_equal(chown(in("sticky/theirs"), OTHER, OTHER), 0);
    assert_false(opens(in("sticky/theirs")));
    make_folder("sticky/folder", 0755);
    write_file("sticky/folder/file");
    assert_true(opens(in("sticky/folder/file")));
    assert_int_equal(chown(in("sticky/folder"), OTHER, OTHER), 0);
    assert_false(opens(in("sticky/folder/file")));
}

static void links_are_followed_by_the_same_rule(void **state) {
    (void)state;
    assert_int_equal(symlink("plain", in("relative")), 0);
    char target[2 * PATH_MAX];
    snprintf(target, sizeof target, "%s", in("sticky/../relative"));
    assert_int_equal(symlink(target, in("absolute")), 0);
    assert_int_equal(symlink("open/file", in("astray")), 0);
    assert_int_equal(symlink("loop", in("loop")), 0);
    assert_true(opens(in("relative")));
    assert_true(opens(in("absolute")));
    assert_false(opens(in("astray")));
    assert_false(opens(in("loop")));
    if (geteuid() != 0)
        return;
    assert_int_equal(symlink("../plain", in("sticky/link")), 0);
    assert_true(opens(in("sticky/link")));
    assert_int_equal(lchown(in("sticky/link"), OTHER, OTHER), 0);
    assert_false(opens(in("sticky/link")));
}

static bool opens_mapped(const char *path, const void *address) {
    const int file = trusted_file_open_mapped(path, (uintptr_t)address);
    if (file >= 0)
        close(file);
    return file >= 0;
}

/* Opens the mapped file wherever it lies, but not once another file is at its path. */
static void the_file_that_is_mapped_is_opened(void **state) {
    (void)state;
    const int file = open(in("open/file"), O_RDONLY);
    const char *const mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    assert_true(mapped != MAP_FAILED);
    close(file);
    assert_true(opens_mapped(in("open/file"), mapped));
    assert_true(opens_mapped(in("open/file"), mapped + 4095));
    assert_false(opens_mapped(in("plain"), mapped));
    assert_false(opens_mapped(in("open/file"), mapped + 4096 * 1024));
    assert_false(opens_mapped(in("open/file"), &state)); /* no such file */
    assert_int_equal(unlink(in("open/file")), 0);
    assert_false(opens_mapped(in("open/file"), mapped));
    write_file("open/file");
    assert_false(opens_mapped(in("open/file"), mapped));
    assert_int_equal(munmap((void *)(uintptr_t)mapped, 4096), 0);
}

static void a_pipe_or_a_device_is_never_opened(void **state) {
    (void)state;
    assert_int_equal(mkfifo(in("pipe"), 0600), 0);
    assert_int_equal(symlink("/dev/zero", in("device")), 0);
    assert_false(opens(in("pipe")));
    assert_false(opens(in("device")));
    assert_false(opens_mapped(in("pipe"), folder));
    assert_false(opens_mapped(in("device"), folder));
}

static int open_descriptors(void) {
    int count = 0;
    for (int i = 0; i < 256; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

static void no_descriptor_is_left(void **state) {
    (void)state;
    const int before = open_descriptors();
    static const char *const names[] = {"plain", "open/file", "none", "loop", "astray", "absolute"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)opens(in(names[i]));
        (void)opens_mapped(in(names[i]), folder);
    }
    assert_int_equal(open_descriptors(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_where_others_cannot_write),
        cmocka_unit_test(a_group_counts_as_others_but_roots),
        cmocka_unit_test(files_of_another_user_are_not_opened),
        cmocka_unit_test(links_are_followed_by_the_same_rule),
        cmocka_unit_test(the_file_that_is_mapped_is_opened),
        cmocka_unit_test(a_pipe_or_a_device_is_never_opened),
        cmocka_unit_test(no_descriptor_is_left),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
