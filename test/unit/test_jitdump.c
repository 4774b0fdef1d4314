/* Tests jitdump files: records of all sorts, files that grow, and the search for the process's own
 * file. */
#include "unit.h"

#include "symbolize/jitdump.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOAD, MOVE, LINES, CLOSE, UNWINDING };

static int file;

static int make_file(void **state) {
    (void)state;
    const uint32_t head[] = {0x4A695444, 1, 40, EM_X86_64, 0, 1, 0, 0, 0, 0};
    file = memfd_create("dump", 0);
    return file >= 0 && write(file, head, sizeof head) == sizeof head ? 0 : -1;
}

static int close_file(void **state) {
    (void)state;
    return close(file);
}

static void put(const void *bytes, size_t size) {
    assert_int_equal(write(file, bytes, size), size);
}

static void put_head(uint32_t id, size_t size) {
    const uint32_t head[] = {id, (uint32_t)(size + 16), 0, 0};
    put(head, sizeof head);
}

static void load(uint64_t address, uint64_t size, const char *name) {
    const uint64_t fields[] = {0, address, address, size, 0};
    put_head(LOAD, sizeof fields + strlen(name) + 1 + 8);
    put(fields, sizeof fields);
    put(name, strlen(name) + 1);
    put("\xc3\xc3\xc3\xc3\xc3\xc3\xc3", 8); /* code */
}

static void move(uint64_t from, uint64_t to, uint64_t size) {
    const uint64_t fields[] = {0, to, from, to, size, 0};
    put_head(MOVE, sizeof fields);
    put(fields, sizeof fields);
}

static void put_line(uint64_t address, uint32_t line, const char *path) {
    put(&address, sizeof address);
    put((const uint32_t[]){line, 0}, 8);
    put(path, strlen(path) + 1);
}

/* Writes lines for code at `address`: lines 10, 11 of a.c, 20 of b.c, each two bytes. */
static void lines(uint64_t address) {
    const uint64_t fields[] = {address, 3};
    put_head(LINES, sizeof fields + 48 + 5 + 2 + 5);
    put(fields, sizeof fields);
    put_line(address, 10, "/a.c");
    put_line(address + 2, 11, "\xff");
    put_line(address + 4, 20, "/b.c");
}

static enum jitdump_result read_it(struct jitdump *dump) {
    return jitdump_read_file(dump, dup(file));
}

static const char *name_at(struct jitdump *dump, uint64_t address) {
    static char name[MAX_GENERATED_NAME];
    uint32_t number;
    return jitdump_find(dump, address, &number) && jitdump_name(dump, number, name) ? name : "";
}

static void assert_line(struct jitdump *dump, uint64_t address, const char *path, int line) {
    char found[PATH_MAX];
    uint32_t number;
    assert_true(jitdump_find(dump, address, &number));
    assert_int_equal(jitdump_line(dump, number, address, found), line);
    assert_string_equal(found, path);
}

static void code_has_names_and_lines(void **state) {
    (void)state;
    struct jitdump dump;
    jitdump_init(&dump);
    load(0x1000, 16, "one");
    put_head(UNWINDING, 8);
    put("\0\0\0\0\0\0\0", 8);
    lines(0x2000);
    load(0x2000, 16, "two");
    load(0x3000, 16, "three");
    assert_int_equal(read_it(&dump), JITDUMP_RESTARTED);
    assert_string_equal(name_at(&dump, 0x100f), "one");
    assert_string_equal(name_at(&dump, 0x1010), "");
    assert_string_equal(name_at(&dump, 0x2004), "two");
    assert_line(&dump, 0x1000, "", 0);
    assert_line(&dump, 0x2001, "/a.c", 10);
    assert_line(&dump, 0x2003, "/a.c", 11);
    assert_line(&dump, 0x200f, "/b.c", 20);
    assert_line(&dump, 0x3000, "", 0); /* the lines belonged to another function */
    jitdump_close(&dump);
}

static void a_file_is_read_on(void **state) {
    (void)state;
    struct jitdump dump;
    jitdump_init(&dump);
    load(0x1000, 16, "one");
    assert_int_equal(read_it(&dump), JITDUMP_RESTARTED);
    load(0x1008, 16, "later");
    lines(0x1000);
    move(0x1000, 0x5000, 16);
    move(0x9000, 0xa000, 16); /* moves no code */
    assert_int_equal(read_it(&dump), JITDUMP_READ);
    assert_string_equal(name_at(&dump, 0x1007), "one");
    assert_string_equal(name_at(&dump, 0x1008), "later");
    assert_string_equal(name_at(&dump, 0x500f), "one");
    assert_string_equal(name_at(&dump, 0xa000), "");
    put_head(LOAD, 100); /* the rest of the record comes later */
    put("half", 4);
    assert_int_equal(read_it(&dump), JITDUMP_READ);
    assert_int_equal(read_it(&dump), JITDUMP_READ);
    assert_int_equal(ftruncate(file, 40), 0);
    assert_int_equal(lseek(file, 40, SEEK_SET), 40);
    load(0x7000, 16, "new");
    assert_int_equal(read_it(&dump), JITDUMP_RESTARTED);
    assert_string_equal(name_at(&dump, 0x1000), "");
    assert_string_equal(name_at(&dump, 0x7000), "new");
    jitdump_close(&dump);
}

static void code_that_was_moved_has_no_lines(void **state) {
    (void)state;
    struct jitdump dump;
    jitdump_init(&dump);
    lines(0x1000);
    load(0x1000, 16, "one");
    move(0x1000, 0x5000, 16);
    read_it(&dump);
    assert_line(&dump, 0x1000, "/a.c", 10);
    assert_line(&dump, 0x5000, "", 0);
    jitdump_close(&dump);
}

static void a_file_name_that_is_no_text_is_none(void **state) {
    (void)state;
    const uint64_t fields[] = {0x1000, 1};
    struct jitdump dump;
    jitdump_init(&dump);
    put_head(LINES, sizeof fields + 16 + 4);
    put(fields, sizeof fields);
    put_line(0x1000, 10,
             "a\x03"
             "b");
    load(0x1000, 16, "one");
    read_it(&dump);
    assert_line(&dump, 0x1000, "", 0);
    jitdump_close(&dump);
}

static void files_that_are_no_dumps_are_not_read(void **state) {
    (void)state;
    static const uint32_t heads[][4] = {{0x4454694A, 1, 40, EM_X86_64}, /* the other byte order */
                                        {0x4A695444, 2, 40, EM_X86_64},
                                        {0x4A695444, 1, 39, EM_X86_64},
                                        {0x4A695444, 1, 0x7fffffff, EM_X86_64},
                                        {0x4A695444, 1, 40, EM_386}};
    load(0x1000, 16, "one");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct jitdump dump;
        jitdump_init(&dump);
        assert_int_equal(pwrite(file, heads[i], sizeof heads[i], 0), sizeof heads[i]);
        assert_int_equal(read_it(&dump), JITDUMP_NONE);
        jitdump_close(&dump);
    }
}

static void records_that_lie_end_it(void **state) {
    (void)state;
    struct jitdump dump;
    jitdump_init(&dump);
    put_head(LOAD, 0); /* shorter than a record */
    put_head(MOVE, 8);
    put("12345678", 8);
    put_head(LINES, 8);
    put("12345678", 8);
    put_head(77, 0);
    load(0x1000, 16, "one");
    put((const uint32_t[]){LOAD, 3, 0, 0}, 16); /* shorter than its head */
    load(0x2000, 16, "two");
    read_it(&dump);
    assert_string_equal(name_at(&dump, 0x1000), "one");
    assert_string_equal(name_at(&dump, 0x2000), "");
    jitdump_close(&dump);
}

/* Maps a marker as runtimes do to show perf where the file is. */
static void the_file_is_found_by_its_marker(void **state) {
    (void)state;
    char path[64];
    struct jitdump dump;
    jitdump_init(&dump);
    assert_false(jitdump_scan(&dump, getpid()));
    snprintf(path, sizeof path, "/tmp/jit-%d.dump", (int)getpid());
    close(file);
    file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    const uint32_t head[] = {0x4A695444, 1, 40, EM_X86_64, 0, 1, 0, 0, 0, 0};
    put(head, sizeof head);
    load(0x1000, 16, "one");
    void *const data = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    assert_true(data != MAP_FAILED);
    assert_false(jitdump_scan(&dump, getpid())); /* the marker is not mapped as code */
    void *const marker = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    assert_true(marker != MAP_FAILED);
    assert_false(jitdump_scan(&dump, getpid() + 1));
    assert_true(jitdump_scan(&dump, getpid()));
    assert_int_equal(jitdump_read(&dump), JITDUMP_RESTARTED);
    assert_string_equal(name_at(&dump, 0x1000), "one");
    munmap(marker, 4096); /* the dump does not end with its marker */
    load(0x2000, 16, "two");
    assert_int_equal(jitdump_read(&dump), JITDUMP_READ);
    assert_string_equal(name_at(&dump, 0x2000), "two");
    unlink(path); /* another file at the path */
    close(open(path, O_RDWR | O_CREAT, 0644));
    assert_int_equal(jitdump_read(&dump), JITDUMP_NONE);
    assert_true(chmod(path, 0666) == 0 && unlink(path) == 0);
    munmap(data, 4096);
    jitdump_close(&dump);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(code_has_names_and_lines, make_file, close_file),
        cmocka_unit_test_setup_teardown(a_file_is_read_on, make_file, close_file),
        cmocka_unit_test_setup_teardown(code_that_was_moved_has_no_lines, make_file, close_file),
        cmocka_unit_test_setup_teardown(a_file_name_that_is_no_text_is_none, make_file, close_file),
        cmocka_unit_test_setup_teardown(files_that_are_no_dumps_are_not_read, make_file,
                                        close_file),
        cmocka_unit_test_setup_teardown(records_that_lie_end_it, make_file, close_file),
        cmocka_unit_test_setup_teardown(the_file_is_found_by_its_marker, make_file, close_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
