/* Tests perf maps: lines of all sorts, files that grow, shrink and are written again, and files of
 * other users. Run by root, the test makes the other user's file with chown; by another user that
 * part is left out. */
#include "unit.h"

#include "symbolize/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OTHER = 65534, LONG = 200000 };

static char folder[64];
static char path[96];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/otelprof-map-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/map", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static int clean(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

static void write_at(int flags, const char *text, size_t size) {
    const int file = open(path, O_WRONLY | O_CREAT | flags, 0644);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, size), size);
    close(file);
}

static void append(const char *text) {
    write_at(O_APPEND, text, strlen(text));
}

static void replace(const char *text) {
    write_at(O_TRUNC, text, strlen(text));
}

/* Reads the file on, and returns the name at the address; "" if there is none. */
static const char *name_at(struct perf_map *map, uint64_t address) {
    static char name[MAX_GENERATED_NAME];
    uint32_t number;
    perf_map_read(map, path);
    const bool found =
        perf_map_find(map, address, &number) && perf_map_name(map, address, number, name);
    perf_map_close_file(map);
    return found ? name : "";
}

static void lines_are_read_on(void **state) {
    (void)state;
    struct perf_map map;
    perf_map_init(&map);
    assert_string_equal(name_at(&map, 0x1000), ""); /* no file */
    append("1000 10 one\n0x2000 0x10 a b  c\n30");
    assert_string_equal(name_at(&map, 0x1000), "one");
    assert_string_equal(name_at(&map, 0x100f), "one");
    assert_string_equal(name_at(&map, 0x1010), "");
    assert_string_equal(name_at(&map, 0x200f), "a b  c");
    append("00 8 half");
    assert_string_equal(name_at(&map, 0x3000), ""); /* the line may go on */
    append(" a line\n0000000000001008\t0000000000000010  later\n");
    assert_string_equal(name_at(&map, 0x3007), "half a line");
    assert_string_equal(name_at(&map, 0x1007), "one");
    assert_string_equal(name_at(&map, 0x1008), "later");
    assert_string_equal(name_at(&map, 0x1017), "later");
    perf_map_close(&map);
}

static void malformed_lines_are_left_out(void **state) {
    (void)state;
    static const char lines[] =
        "\n \n1000\n1000 10\n1000 10 \n1000  10\n 1000 10 x\nx 10 x\n1000 y x\n0x 0x x\n"
        "11111111111111111 10 x\n1000 11111111111111111 x\n1000 0 x\nffffffffffffffff 10 x\n"
        "1000 100000000 x\n1000 10 \xff\xfe\n\0\0\0\n1000-1010 x\n2000 10 y\n";
    struct perf_map map;
    perf_map_init(&map);
    write_at(0, lines, sizeof lines - 1);
    assert_string_equal(name_at(&map, 0x1000), "\xff\xfe");
    assert_string_equal(name_at(&map, 0x2000), "y");
    perf_map_close(&map);
}

static void a_line_without_end_costs_itself(void **state) {
    (void)state;
    char *const line = malloc(LONG);
    struct perf_map map;
    perf_map_init(&map);
    memset(line, 'x', LONG);
    append("1000 10 one\n2000 10 ");
    write_at(O_APPEND, line, 5000);
    append("\n3000 10 ");
    write_at(O_APPEND, line, LONG);
    append("\n4000 10 four\n");
    assert_string_equal(name_at(&map, 0x1000), "one");
    assert_int_equal(strlen(name_at(&map, 0x2000)), MAX_GENERATED_NAME - 1);
    assert_string_equal(name_at(&map, 0x3000), "");
    assert_string_equal(name_at(&map, 0x4000), "four");
    perf_map_close(&map);
    free(line);
}

static void a_new_file_is_read_anew(void **state) {
    (void)state;
    struct perf_map map;
    perf_map_init(&map);
    append("1000 10 one\n2000 10 two\n");
    assert_string_equal(name_at(&map, 0x2000), "two");
    replace("1000 10 eins\n"); /* shorter than before */
    assert_string_equal(name_at(&map, 0x1000), "eins");
    assert_string_equal(name_at(&map, 0x2000), "");
    replace("3000 10 drei\n4000 10 vier\n5000 10 fuenf\n"); /* longer, with the same inode */
    assert_string_equal(name_at(&map, 0x1000), "");
    assert_string_equal(name_at(&map, 0x3000), "drei");
    assert_string_equal(name_at(&map, 0x5000), "fuenf");
    unlink(path);
    assert_string_equal(name_at(&map, 0x5000), "");
    append("5000 10 cinq\n");
    assert_string_equal(name_at(&map, 0x5000), "cinq");
    assert_string_equal(name_at(&map, 0x3000), "");
    perf_map_close(&map);
}

/* Changes an early line, and keeps the last bytes that were read, by which the reader recognises
 * the file: only the line itself shows the change. */
static void a_line_that_changed_names_nothing(void **state) {
    (void)state;
    static const char end[] = "3000 10 a line that is longer than what is remembered of an end, "
                              "so that all of it is the same\n";
    struct perf_map map;
    perf_map_init(&map);
    append("1000 10 one\n");
    append(end);
    assert_string_equal(name_at(&map, 0x1000), "one");
    write_at(0, "9000 10 six\n", 12);
    assert_string_equal(name_at(&map, 0x1000), "");
    assert_string_equal(name_at(&map, 0x9000), "six"); /* the read of the changed line has revealed
                                                        * the change */
    perf_map_close(&map);
}

static bool is_read(void) {
    struct perf_map map;
    perf_map_init(&map);
    const enum perf_map_result answer = perf_map_read(&map, path);
    perf_map_close(&map);
    return answer != PERF_MAP_NONE;
}

static void only_our_own_file_is_read(void **state) {
    (void)state;
    char other[128];
    snprintf(other, sizeof other, "%s/other", folder);
    append("1000 10 one\n");
    assert_true(is_read());
    assert_int_equal(chmod(path, 0664), 0); /* a usual umask */
    assert_true(is_read());
    assert_int_equal(chmod(path, 0666), 0);
    assert_false(is_read());
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(link(path, other), 0);
    assert_false(is_read());
    unlink(path);
    assert_int_equal(symlink(other, path), 0);
    assert_false(is_read());
    unlink(path);
    unlink(other);
    assert_int_equal(mkfifo(path, 0644), 0); /* no process writes to it: to open it must not wait */
    assert_false(is_read());
    unlink(path);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_false(is_read());
    rmdir(path);
    append("1000 10 one\n");
    if (geteuid() == 0) {
        assert_int_equal(chown(path, OTHER, OTHER), 0);
        assert_false(is_read());
    }
}

/* Reads a map with more lines than the bound, some of them at a time: never those beyond the bound.
 * One read alone returns PERF_MAP_EXCESS. */
static void a_map_without_end_ends(void **state) {
    (void)state;
    enum { LINES = 700000 };
    FILE *const file = fopen(path, "w");
    struct perf_map map;
    unsigned excess = 0;
    uint32_t number;
    for (int i = 0; i < LINES; i++)
        fprintf(file, "%x 10 a name of code %d\n", 32 * i, i);
    fclose(file);
    perf_map_init(&map);
    for (int i = 0; i < 5; i++)
        excess += perf_map_read(&map, path) == PERF_MAP_EXCESS;
    assert_int_equal(excess, 1);
    assert_true(perf_map_find(&map, 32, &number));
    assert_false(perf_map_find(&map, 32 * (LINES - 1), &number));
    perf_map_close(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lines_are_read_on, clean),
        cmocka_unit_test_teardown(malformed_lines_are_left_out, clean),
        cmocka_unit_test_teardown(a_line_without_end_costs_itself, clean),
        cmocka_unit_test_teardown(a_new_file_is_read_anew, clean),
        cmocka_unit_test_teardown(a_line_that_changed_names_nothing, clean),
        cmocka_unit_test_teardown(only_our_own_file_is_read, clean),
        cmocka_unit_test_teardown(a_map_without_end_ends, clean),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
