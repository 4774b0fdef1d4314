/* Tests small parsers and formatters of text: numbers, files of /proc, key=value lists, UTF-8, log
 * lines, demangling. */
#include "unit.h"

#include "keyvalues.h"
#include "log.h"
#include "process_file.h"
#include "symbolize/demangle.h"
#include "text_numbers.h"
#include "utf8.h"

#include <ctype.h>
#include <fcntl.h>
#include <unistd.h>

static void append(void *arg, const char *key, const char *value) {
    char *const text = arg;
    strcat(strcat(strcat(strcat(text, key), "->"), value), ";");
}

static bool parse(const char *text, char *result) {
    char scratch[256];
    *result = 0;
    return keyvalues_parse(text, scratch, append, result);
}

static void keyvalues_that_are_well_formed(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"a=b", "a->b;"},
        {" a = b , c=d ", "a->b;c->d;"},
        {"a=b%20c%2Cd", "a->b c,d;"},
        {"a=", "a->;"},
        {"a=b=c", "a->b=c;"},
        {"a=b,,c=d,", "a->b;c->d;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char result[256];
        assert_true(parse(cases[i][0], result));
        assert_string_equal(result, cases[i][1]);
    }
}

static void keyvalues_that_are_not(void **state) {
    (void)state;
    static const char *const cases[] = {"a", "=b", "a=b,c", "a=%", "a=%4", "a=%zz", "a=%00"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char result[256];
        assert_false(parse(cases[i], result));
        assert_string_equal(result, "");
    }
}

static void utf8(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xff", "?"},
        {"a\xc3", "a?"},
        {"\xc0\x80", "??"},
        {"\xed\xa0\x80", "???"},
        {"\xf4\x90\x80\x80", "????"},
        {"\xe2\x82x", "??x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        strcpy(text, cases[i][0]);
        utf8_make_valid(text);
        assert_string_equal(text, cases[i][1]);
    }
}

static void numbers_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        unsigned base;
        uint64_t number;
        int length; /* -1: no number is there */
    } cases[] = {
        {"0", 10, 0, 1},
        {"18446744073709551615 x", 10, UINT64_MAX, 20},
        {"18446744073709551616", 10, 0, -1},
        {"0012a", 10, 12, 4},
        {"", 10, 0, -1},
        {"-1", 10, 0, -1},
        {" 1", 10, 0, -1},
        {"ffffffffffffffff-", 16, UINT64_MAX, 16},
        {"00000000000000000000fFg", 16, 255, 22},
        {"1ffffffffffffffff", 16, 0, -1},
        {"g", 16, 0, -1},
        {"0100008", 8, 010000, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t number = 1;
        const char *const end = number_read(cases[i].text, cases[i].base, &number);
        assert_int_equal(end ? end - cases[i].text : -1, cases[i].length);
        assert_int_equal(number, cases[i].number);
    }
    for (int c = 0; c < 256; c++)
        assert_int_equal(number_digit((char)c),
                         isxdigit(c) ? strtol((char[]){(char)c, 0}, NULL, 16) : NO_DIGIT);
}

static void numbers_are_written(void **state) {
    (void)state;
    char text[NUMBER_BYTES];
    assert_ptr_equal(number_write(text, 10, UINT64_MAX), text + 20);
    assert_string_equal(text, "18446744073709551615");
    assert_ptr_equal(number_write(text, 16, 0xabcdef0), text + 7);
    assert_string_equal(text, "abcdef0");
    assert_ptr_equal(number_write(text, 10, 0), text + 1);
    assert_string_equal(text, "0");
    assert_ptr_equal(number_write_bytes(text, "\x0f\xa0", 2), text + 4);
    assert_string_equal(text, "0fa0");
    assert_ptr_equal(number_write_bytes(text, "", 0), text);
    assert_string_equal(text, "");
}

static void values_are_found_by_their_line(void **state) {
    (void)state;
    static const char text[] = "Name:\tUid:\nXUid:\t1\nUid:\t2\t3\nlast 4";
    char read[16];
    assert_string_equal(process_text_value(text, "Uid:", '\t'), "2\t3\nlast 4");
    assert_string_equal(process_text_value(text, "Name:", '\t'), text + 6);
    assert_string_equal(process_text_value(text, "last", ' '), "4");
    assert_null(process_text_value(text, "Uid", '\t'));
    assert_null(process_text_value("", "Uid:", '\t'));
    assert_true(process_file_text(process_file_open_thread((uint32_t)getpid(), "comm"), read, 6));
    assert_string_equal(read, "test_");
    assert_false(process_file_text(process_file_open_thread(0, "comm"), read, sizeof read));
    assert_string_equal(read, "");
    assert_false(process_file_text(process_file_open_path("/dev/null"), read, sizeof read));
}

static void read_back(const char *path, char *text, size_t size) {
    const int file = open(path, O_RDONLY);
    assert_true(file >= 0);
    const ssize_t length = read(file, text, size - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
}

static void log_lines(void **state) {
    (void)state;
    char path[] = "/tmp/otelprof-log-XXXXXX";
    close(mkstemp(path));
    struct log log;
    log_init(&log, LOG_INFO, path);
    log_warn(&log, "%s %d %u %lx %zu %c%% %.*s", "text", -5, 7u, 0xabcul, (size_t)9, 'z', 3,
             "abcdef");
    log_debug(&log, "not this one");
    log_info(&log, "%lld", -9223372036854775807LL - 1);
    char text[512];
    char expected[512];
    read_back(path, text, sizeof text);
    snprintf(expected, sizeof expected,
             "libotelprof[%d] warn: text -5 7 abc 9 z%% abc\n"
             "libotelprof[%d] info: -9223372036854775808\n",
             (int)getpid(), (int)getpid());
    assert_string_equal(text, expected);
    unlink(path);
}

static void long_log_lines_are_cut(void **state) {
    (void)state;
    char path[] = "/tmp/otelprof-log-XXXXXX";
    close(mkstemp(path));
    struct log log;
    char text[4096];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    log_init(&log, LOG_INFO, path);
    log_info(&log, "%s%s%s", text, text, text); /* each text is cut, too: shown_text.h */
    read_back(path, text, sizeof text);
    assert_int_equal(strlen(text), 1024);
    assert_int_equal(text[1023], '\n');
    unlink(path);
}

static void log_leaves_a_replaced_stderr_alone(void **state) {
    (void)state;
    char path[] = "/tmp/otelprof-log-XXXXXX";
    const int file = mkstemp(path);
    const int saved = dup(STDERR_FILENO);
    struct log log;
    log_init(&log, LOG_INFO, "");
    dup2(file, STDERR_FILENO);
    const int ours = log_open_stderr(&log);
    log_error(&log, "must not be in the program's file");
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_int_equal(ours, -1);
    assert_int_equal(lseek(file, 0, SEEK_END), 0);
    close(file);
    unlink(path);
}

static void demangling(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"},
        {"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
        {"_RNvC6_123foo3bar", "123foo::bar"},
        {"_Dmain", "D main"},
        {"_D4shop4Cart3addMFiZv", "shop.Cart.add"},
        {"_D4shop4Cart6__ctorMFNbNiZCQzQx", "shop.Cart.this"},
        {"_D3std5stdio__T7writelnTAyaZQnFNfQjZv", "std.stdio.writeln!(...).writeln"},
        {"_D3std5stdio13__T5writeTAaZ5writeFAaZv", "std.stdio.write!(...).write"},
        {"_D4main3runFZ5innerMFNaiC6object6ObjectZi", "main.run.inner"},
        {"_D4main__T3powVii3VAyaa2_6162Z3powFNaNbiZi", "main.pow!(...).pow"},
        {"camlStdlib__List__map_273", "Stdlib.List.map"},
        {"camlStdlib__List.map_273", "Stdlib.List.map"},
        {"camlMain__fun_123", "Main.fun_123"},
        {"camlMain__$2b$2e_81", "Main.+."},
        {"camlMain__a__b_81", "Main.a__b"},
        {"base_GHCziBase_map_info", "GHC.Base.map"},
        {"ghczmprim_GHCziTypes_ZMZN_closure", "GHC.Types.[]"},
        {"containerszm0zi6zi5zi1_DataziMapziInternal_zdwinsert_info", "Data.Map.Internal.$winsert"},
        {"base_GHCziTuple_Z3T_con_info", "GHC.Tuple.(,,)"},
        {"Main_fibzq_info", "Main.fib'"},
        {"Main_az3aUb_info", "Main.a:b"},
        {"Main_z0394Ux_info", "Main.?x"},
        {"Main_Z2Hx_info", "Main.(#,#)x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *const name = demangle(cases[i][0]);
        assert_non_null(name);
        assert_string_equal(name, cases[i][1]);
        free(name);
    }
    assert_null(demangle("main"));
    assert_null(demangle("_start"));
    assert_null(demangle("_Zgarbage"));
    static const char *const others[] = {
        "_D",
        "_Dynamic",
        "_D9",
        "_D3abcQz",
        "camlinit",
        "caml_alloc_small",
        "camlMain__data",
        "camlMain_12",
        "get_info",
        "page_Size_info",
        "size_Map_info",
        "Main_info",
        "Main_az0x3aUb_info", /* a prefix of C is no digit of GHC's */
        "Main_az99999999999999999U_info",
        "Main_Z99999999999999999999T_info",
        "_D3abc__T1a",
        "base_GHCzi_info",
        "rzi_Azw_x_info",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_null(demangle(others[i]));
}

/* Doubles the text at each level: 283 bytes of name are a gigabyte of text. */
static void a_name_that_explodes_stays_mangled(void **state) {
    (void)state;
    char name[512] = "_Z1fISt4pairIiiE";
    for (char level = '1'; level <= '9'; level++)
        sprintf(name + strlen(name), "S0_IS%c_S%c_E", level, level);
    for (char level = 'A'; level < 'P'; level++)
        sprintf(name + strlen(name), "S0_IS%c_S%c_E", level, level);
    strcat(name, "Evv");
    assert_null(demangle(name));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keyvalues_that_are_well_formed),
        cmocka_unit_test(keyvalues_that_are_not),
        cmocka_unit_test(utf8),
        cmocka_unit_test(numbers_are_read),
        cmocka_unit_test(numbers_are_written),
        cmocka_unit_test(values_are_found_by_their_line),
        cmocka_unit_test(log_lines),
        cmocka_unit_test(long_log_lines_are_cut),
        cmocka_unit_test(log_leaves_a_replaced_stderr_alone),
        cmocka_unit_test(demangling),
        cmocka_unit_test(a_name_that_explodes_stays_mangled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
