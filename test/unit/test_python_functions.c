/* Tests functions of Python, with hand-made code objects: their names, files and lines, and objects
 * that must not be mistaken for them. test/differential/python_names.py compares with real
 * interpreters. */
#include "unit.h"

#include "frames/python_functions.h"
#include "frames/python_lines.h"
#include "kernel/profiler_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* Lists the offsets of 3.11. */
static const struct python_offsets offsets = {
    .type = 8,
    .var_size = 16,
    .code_filename = 112,
    .code_name = 120,
    .code_qualname = 128,
    .code_linetable = 136,
    .code_first_line = 72,
    .code_units = 184,
    .bytes_data = 32,
    .string_length = 16,
    .string_state = 32,
    .string_ascii = 48,
    .string_wide = 72,
};
enum { GOING_BYTES = 1 << 16 };
static _Atomic bool has_read_enough;

enum { COMPACT = 1 << 5, ASCII = 1 << 6, KIND_SHIFT = 2, MOST = 9000 };

struct string {
    uint64_t references, type, length, hash, state, wide[4];
    uint8_t room[MOST * 4];
};

struct bytes {
    uint64_t references, type, size, hash;
    uint8_t room[MOST];
};

struct code {
    uint64_t words[23]; /* 184 bytes */
    struct string name, file;
    struct bytes lines;
};

static void set_string(struct string *string, const void *characters, uint64_t count, uint32_t kind,
                       bool is_ascii) {
    *string = (struct string){.references = 1, .type = 7, .length = count, .hash = UINT64_MAX};
    string->state = (uint64_t)kind << KIND_SHIFT | COMPACT | (is_ascii ? ASCII : 0);
    memcpy((uint8_t *)string + (is_ascii ? 48 : 72), characters, count * kind);
}

static void set_ascii(struct string *string, const char *text) {
    set_string(string, text, strlen(text), 1, true);
}

static void set_lines(struct code *code, const uint8_t *table, size_t size) {
    code->lines = (struct bytes){.references = 1, .type = 8, .size = size};
    memcpy(code->lines.room, table, size);
}

static void set_code(struct code *code, const char *name, const char *file, int first_line) {
    static const uint8_t table[] = {0x80 | 10 << 3 | 1, 0, 1, 0x80 | 11 << 3 | 7, 4, 9};
    memset(code->words, 0, sizeof code->words);
    code->words[0] = 1;
    code->words[9] = (uint32_t)first_line;
    code->words[14] = (uintptr_t)&code->file;
    code->words[16] = (uintptr_t)&code->name;
    code->words[17] = (uintptr_t)&code->lines;
    set_ascii(&code->name, name);
    set_ascii(&code->file, file);
    set_lines(code, table, sizeof table);
}

static uint32_t number_of(struct python_functions *functions, const struct code *code) {
    static struct python_pages pages;
    struct python_reader reader = {.copies = &pages};
    struct python_reader other = {.of_another = true, .copies = &pages};
    python_pages_forget(&pages);
    const uint32_t number = python_function(functions, &offsets, &reader, (uintptr_t)code);
    python_pages_forget(&pages);
    assert_int_equal(python_function(functions, &offsets, &other, (uintptr_t)code), number);
    return number;
}

static struct named_frame name_of(struct python_functions *functions, uint32_t number,
                                  uint32_t position) {
    struct named_frame named = {.type = ""};
    assert_true(python_function_name(functions, number, position, &named));
    assert_string_equal(named.type, "cpython");
    return named;
}

static struct python_functions *new_functions(void) {
    struct python_functions *const functions = python_functions_new();
    assert_non_null(functions);
    return functions;
}

static void end(struct python_functions *functions) {
    profiler_memory_unmap(functions, PYTHON_FUNCTIONS_BYTES);
}

static struct code code;
static struct code twin;

/* --- what is reported --- */

static void functions_have_name_file_and_lines(void **state) {
    (void)state;
    struct python_functions *const functions = new_functions();
    set_code(&code, "Class.method", "/a/file.py", 42);
    const uint32_t number = number_of(functions, &code);
    assert_int_not_equal(number, 0);
    const struct named_frame named = name_of(functions, number, 1);
    assert_string_equal(named.function, "Class.method");
    assert_string_equal(named.file, "/a/file.py");
    assert_int_equal(named.start_line, 42);
    assert_int_equal(named.line, 42);
    assert_int_equal(name_of(functions, number, 2).line, 43);
    assert_int_equal(name_of(functions, number, 9).line, 43);
    assert_int_equal(name_of(functions, number, 10).line, 0);
    assert_int_equal(name_of(functions, number, PYTHON_POSITION_UNKNOWN).line, 0);
    end(functions);
}

static void equal_functions_are_one_and_others_are_not(void **state) {
    (void)state;
    struct python_functions *const functions = new_functions();
    set_code(&code, "f", "file.py", 1);
    set_code(&twin, "f", "file.py", 1);
    const uint32_t number = number_of(functions, &code);
    assert_int_equal(number_of(functions, &twin), number);
    set_code(&twin, "g", "file.py", 1);
    const uint32_t g = number_of(functions, &twin);
    set_code(&twin, "f", "file.pz", 1);
    const uint32_t other_file = number_of(functions, &twin);
    set_code(&twin, "f", "file.py", 2);
    const uint32_t other_line = number_of(functions, &twin);
    set_code(&twin, "f", "file.py", 1);
    twin.lines.room[5]++;
    const uint32_t other_table = number_of(functions, &twin);
    assert_true(number && g && other_file && other_line && other_table);
    assert_true(number != g && number != other_file && number != other_line &&
                number != other_table && g != other_file && other_line != other_table);
    assert_string_equal(name_of(functions, number, 0).function, "f");
    assert_string_equal(name_of(functions, other_file, 0).file, "file.pz");
    end(functions);
}

/* Puts another function's name where a former one was, with every address as before. */
static void a_reused_address_is_another_function(void **state) {
    (void)state;
    struct python_functions *const functions = new_functions();
    uint32_t before = 0;
    for (int i = 0; i < 26; i++) {
        char name[] = {(char)('a' + i), 0};
        set_code(&code, name, "file.py", 1);
        const uint32_t number = number_of(functions, &code);
        assert_true(number && number != before);
        assert_string_equal(name_of(functions, number, 0).function, name);
        before = number;
    }
    code.words[0] = 0; /* no reference is left: the object is not trusted, but can be read */
    assert_int_equal(number_of(functions, &code), before);
    end(functions);
}

static void assert_name(const void *characters, uint64_t count, uint32_t kind, const char *text) {
    struct python_functions *const functions = new_functions();
    set_code(&code, "", "", 1);
    set_string(&code.name, characters, count, kind, false);
    assert_string_equal(name_of(functions, number_of(functions, &code), 0).function, text);
    end(functions);
}

static void names_of_every_width_are_utf8(void **state) {
    (void)state;
    assert_name("caf\xe9", 4, 1, "caf\xc3\xa9");
    assert_name((const uint16_t[]){0x51fd, 'x', 0xdc80, 0}, 4, 2,
                "\xe5\x87\xbdx\xef\xbf\xbd\xef\xbf\xbd");
    assert_name((const uint32_t[]){0x1d6d1, 'y', 0x110000}, 3, 4, "\xf0\x9d\x9b\x91y\xef\xbf\xbd");
    assert_name("", 0, 1, "");
}

static void long_names_keep_their_start_and_files_their_end(void **state) {
    (void)state;
    struct python_functions *const functions = new_functions();
    static uint16_t wide[600];
    static char text[601];
    memset(text, 'n', 600);
    text[0] = 'S';
    text[599] = 'E';
    for (int i = 0; i < 600; i++)
        wide[i] = (uint8_t)text[i];
    wide[598] = 0x3b1;
    set_code(&code, text, text, 1);
    struct named_frame named = name_of(functions, number_of(functions, &code), 0);
    assert_int_equal(strlen(named.function), PYTHON_NAME_CHARACTERS);
    assert_int_equal(strlen(named.file), PYTHON_FILE_CHARACTERS);
    assert_int_equal(named.function[0], 'S');
    assert_string_equal(named.file + PYTHON_FILE_CHARACTERS - 2, "nE");
    set_string(&code.file, wide, 600, 2, false);
    named = name_of(functions, number_of(functions, &code), 0);
    assert_string_equal(named.file + PYTHON_FILE_CHARACTERS - 2, "\xce\xb1"
                                                                 "E");
    end(functions);
}

static void of_a_long_table_the_beginning_has_lines(void **state) {
    (void)state;
    struct python_functions *const functions = new_functions();
    static uint8_t table[MOST];
    for (int i = 0; i < MOST; i += 3)
        memcpy(table + i, (const uint8_t[]){0x80 | 11 << 3, 0, 1}, 3);
    set_code(&code, "f", "file.py", 0);
    set_lines(&code, table, MOST);
    const uint32_t number = number_of(functions, &code);
    assert_int_equal(name_of(functions, number, 2000).line, 2001);
    assert_int_equal(name_of(functions, number, MOST / 3 - 1).line, 0);
    end(functions);
}

/* --- what cannot be reported --- */

static void unreadable_code_objects_have_no_number(void **state) {
    (void)state;
    struct python_functions *const functions = new_functions();
    char *const gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static const int pointers[] = {14, 16, 17};
    assert_int_equal(number_of(functions, (const struct code *)(void *)gone), 0);
    assert_int_equal(number_of(functions, NULL), 0);
    for (size_t i = 0; i < 3; i++) {
        const uintptr_t bad[] = {0, 8, (uintptr_t)gone, UINT64_MAX - 7, (uintptr_t)&twin | 1};
        for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
            set_code(&code, "f", "file.py", 1);
            code.words[pointers[i]] = bad[j];
            assert_int_equal(number_of(functions, &code), 0);
        }
    }
    munmap(gone, 4096);
    end(functions);
}

static void sizes_that_cannot_be_are_refused(void **state) {
    (void)state;
    struct python_functions *const functions = new_functions();
    set_code(&code, "f", "file.py", 1);
    code.lines.size = UINT64_MAX;
    assert_int_equal(number_of(functions, &code), 0);
    set_code(&code, "f", "file.py", 1);
    code.name.length = UINT64_MAX;
    assert_int_equal(number_of(functions, &code), 0);
    set_code(&code, "f", "file.py", 1);
    code.file.length = 1ull << 50;
    assert_int_equal(number_of(functions, &code), 0);
    end(functions);
}

/* A string of a subclass has its characters elsewhere. */
static void a_string_of_another_kind_is_no_name(void **state) {
    (void)state;
    struct python_functions *const functions = new_functions();
    set_code(&code, "f", "file.py", 1);
    code.name.state &= ~(uint64_t)COMPACT;
    const struct named_frame named = name_of(functions, number_of(functions, &code), 0);
    assert_string_equal(named.function, "");
    assert_string_equal(named.file, "file.py");
    end(functions);
}

static void any_number_can_be_looked_up(void **state) {
    (void)state;
    struct python_functions *const functions = new_functions();
    struct named_frame named;
    uint32_t known[100];
    uint32_t told = 0;
    for (int i = 0; i < 100; i++) {
        set_code(&code, "function", "file.py", i + 1);
        known[i] = number_of(functions, &code);
    }
    for (uint32_t i = 0; i < known[99] + 100; i++)
        told += python_function_name(functions, i, 0, &named);
    assert_int_equal(told, 100);
    assert_false(python_function_name(functions, UINT32_MAX, 0, &named));
    end(functions);
}

static void a_full_table_refuses_functions_and_keeps_its_own(void **state) {
    (void)state;
    struct python_functions *const functions = new_functions();
    static struct python_pages pages;
    struct python_reader reader = {.copies = &pages};
    set_code(&code, "first", "file.py", 1);
    const uint32_t first = number_of(functions, &code);
    set_code(&code, "f", "/a/usual/path/of/some/sixty/characters/in/a/library/file.py", 1);
    int kept = 0;
    for (; kept < 1000000; kept++) {
        code.words[9] = (uint32_t)kept;
        python_pages_forget(&pages);
        if (!python_function(functions, &offsets, &reader, (uintptr_t)&code))
            break;
    }
    assert_in_range(kept, 50000, 200000);
    assert_string_equal(name_of(functions, first, 0).function, "first");
    code.words[9] = 0;
    assert_int_not_equal(number_of(functions, &code), 0);
    end(functions);
}

/* Makes the memory unreadable and readable again all the time, on another thread: it may change
 * between a check and the read. */
static void *opens_and_closes(void *arg) {
    const uintptr_t place = (uintptr_t)arg;
    while (!atomic_load(&has_read_enough)) {
        mprotect((void *)place, GOING_BYTES, PROT_NONE);
        mprotect((void *)place, GOING_BYTES, PROT_READ | PROT_WRITE);
    }
    return NULL;
}

static void parts_that_go_while_they_are_read_are_no_fault(void **state) {
    (void)state;
    enum { MOST_READS = 1000000, EACH = 500 };
    static struct python_pages pages;
    struct python_reader reader = {.copies = &pages};
    struct python_functions *const functions = new_functions();
    struct string *const going =
        mmap(NULL, GOING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t thread;
    int found = 0;
    int gone = 0;
    set_code(&code, "f", "file.py", 1);
    *going = code.name;
    code.words[16] = (uintptr_t)going;
    const uint32_t number = number_of(functions, &code);
    assert_int_not_equal(number, 0);
    pthread_create(&thread, NULL, opens_and_closes, going);
    for (int i = 0; i < MOST_READS && (found < EACH || gone < EACH); i++) {
        python_pages_forget(&pages);
        const uint32_t now = python_function(functions, &offsets, &reader, (uintptr_t)&code);
        assert_true(now == 0 || now == number);
        found += now != 0;
        gone += now == 0;
    }
    atomic_store(&has_read_enough, true);
    pthread_join(thread, NULL);
    munmap(going, GOING_BYTES);
    end(functions);
}

/* --- many at once, and children --- */

enum { THREADS = 8, FUNCTIONS = 3000 };

struct worker {
    struct python_functions *functions;
    uint32_t numbers[FUNCTIONS];
};

static void *keep_all(void *arg) {
    struct worker *const worker = arg;
    struct python_pages *const pages = aligned_alloc(_Alignof(struct python_pages), sizeof *pages);
    struct python_reader reader = {.copies = pages};
    struct code *const own = malloc(sizeof *own);
    char name[32];
    memset(pages, 0, sizeof *pages);
    for (int i = 0; i < FUNCTIONS; i++) {
        snprintf(name, sizeof name, "function%d", i);
        set_code(own, name, "file.py", i);
        python_pages_forget(pages);
        worker->numbers[i] = python_function(worker->functions, &offsets, &reader, (uintptr_t)own);
    }
    free(own);
    free(pages);
    return NULL;
}

static void many_threads_get_one_number_for_one_function(void **state) {
    (void)state;
    struct python_functions *const functions = new_functions();
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    char name[32];
    for (int i = 0; i < THREADS; i++) {
        workers[i].functions = functions;
        pthread_create(&threads[i], NULL, keep_all, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < FUNCTIONS; i++) {
        for (int j = 1; j < THREADS; j++)
            assert_int_equal(workers[j].numbers[i], workers[0].numbers[i]);
        snprintf(name, sizeof name, "function%d", i);
        assert_string_equal(name_of(functions, workers[0].numbers[i], 0).function, name);
    }
    end(functions);
}

static void a_forked_child_begins_anew(void **state) {
    (void)state;
    struct python_functions *const functions = new_functions();
    struct named_frame named;
    int status = 0;
    set_code(&code, "parents", "file.py", 1);
    const uint32_t number = number_of(functions, &code);
    const pid_t child = fork();
    if (child == 0) {
        python_functions_after_fork(functions);
        const bool is_gone = !python_function_name(functions, number, 0, &named);
        set_code(&code, "childs", "file.py", 1);
        const uint32_t own = number_of(functions, &code);
        _exit(is_gone && own && python_function_name(functions, own, 0, &named) &&
                      strcmp(named.function, "childs") == 0
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(name_of(functions, number, 0).function, "parents");
    end(functions);
}

/* --- lines --- */

static void lines_are_read_in_every_form(void **state) {
    (void)state;
    static const uint8_t table[] = {
        0x80 | 0 << 3 | 0,  0x12,    /* short: the same line */
        0x80 | 12 << 3 | 1, 3,    4, /* two lines on, two instructions */
        0x80 | 15 << 3 | 0,          /* no line */
        0x80 | 13 << 3 | 0, 0x05,    /* two lines back: the sign is in the lowest bit */
        0x80 | 14 << 3 | 7, 0x48, 0x03, 0x01, 0x01, 2, /* 100 lines on: two bytes */
        0x80 | 10 << 3 | 0, 1,    2,
    };
    static const int lines[] = {50, 52, 52, 0, 50, 150, 150, 150, 150, 150, 150, 150, 150, 150, 0};
    for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        /* 0x48 has six bits, 0x03 has those above: 8 + 3 * 64 = 200, which is 100 lines */
        assert_int_equal(python_line(table, sizeof table, 50, i), lines[i]);
    }
    for (uint32_t size = 0; size < sizeof table; size++)
        for (uint32_t i = 0; i < 20; i++) { /* a cut table is read to its end at most */
            uint8_t *const cut = malloc(size + 1);
            memcpy(cut, table, size);
            (void)python_line(cut, size, 50, i);
            free(cut);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_have_name_file_and_lines),
        cmocka_unit_test(equal_functions_are_one_and_others_are_not),
        cmocka_unit_test(a_reused_address_is_another_function),
        cmocka_unit_test(names_of_every_width_are_utf8),
        cmocka_unit_test(long_names_keep_their_start_and_files_their_end),
        cmocka_unit_test(of_a_long_table_the_beginning_has_lines),
        cmocka_unit_test(unreadable_code_objects_have_no_number),
        cmocka_unit_test(sizes_that_cannot_be_are_refused),
        cmocka_unit_test(a_string_of_another_kind_is_no_name),
        cmocka_unit_test(any_number_can_be_looked_up),
        cmocka_unit_test(a_full_table_refuses_functions_and_keeps_its_own),
        cmocka_unit_test(parts_that_go_while_they_are_read_are_no_fault),
        cmocka_unit_test(many_threads_get_one_number_for_one_function),
        cmocka_unit_test(a_forked_child_begins_anew),
        cmocka_unit_test(lines_are_read_in_every_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
