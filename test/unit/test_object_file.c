/* Tests that a shared object whose file was cut short is recognised before the loader maps it. */
#include "unit.h"

#include "process/object_file.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the offset of the end of the last loaded segment. The tests read their own executable,
 * which is an object like others. */
static off_t end_of_segments(FILE *file) {
    ElfW(Ehdr) header;
    off_t end = 0;
    assert_int_equal(fread(&header, sizeof header, 1, file), 1);
    for (int i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;
        assert_int_equal(fseek(file, (long)(header.e_phoff + i * sizeof segment), SEEK_SET), 0);
        assert_int_equal(fread(&segment, sizeof segment, 1, file), 1);
        if (segment.p_type == PT_LOAD && (off_t)(segment.p_offset + segment.p_filesz) > end)
            end = (off_t)(segment.p_offset + segment.p_filesz);
    }
    return end;
}

static void copy_to(const char *path, FILE *from, off_t size) {
    FILE *const to = fopen(path, "w");
    rewind(from);
    for (off_t i = 0; i < size; i++)
        fputc(fgetc(from), to);
    assert_int_equal(fclose(to), 0);
}

static void a_file_that_ends_before_its_last_segment_is_not_whole(void **state) {
    (void)state;
    char path[] = "/tmp/object.XXXXXX";
    FILE *const own = fopen("/proc/self/exe", "r");
    const off_t end = end_of_segments(own);
    const off_t cuts[] = {end - 1, end / 2, 4096, sizeof(ElfW(Ehdr)) + 1};
    close(mkstemp(path));
    copy_to(path, own, end);
    assert_true(object_file_is_whole(path));
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        copy_to(path, own, cuts[i]);
        assert_false(object_file_is_whole(path));
    }
    fclose(own);
    unlink(path);
}

static void other_files_are_left_to_the_loader(void **state) {
    (void)state;
    assert_true(object_file_is_whole("/proc/self/exe"));
    assert_true(object_file_is_whole("/nowhere"));
    assert_true(object_file_is_whole("/dev/null"));
    assert_true(object_file_is_whole("/etc"));
    assert_true(object_file_is_whole("/etc/passwd"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_ends_before_its_last_segment_is_not_whole),
        cmocka_unit_test(other_files_are_left_to_the_loader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
