/* Tests which program a process of qemu-user emulates, by its arguments. */
#include "unit.h"

#include "encode/emulated_program.h"

#define PROGRAM_OF(executable, arguments) emulated_program(executable, arguments, sizeof(arguments))

static void an_emulator_is_the_program_that_it_emulates(void **state) {
    (void)state;
    static const char *const qemu = "/usr/bin/qemu-x86_64";
    assert_string_equal(PROGRAM_OF(qemu, "qemu-x86_64\0./app\0-x"), "./app");
    assert_string_equal(PROGRAM_OF(qemu, "qemu\0-L\0/sys\0--strace\0-E\0A=b\0/bin/app"),
                        "/bin/app");
    assert_string_equal(PROGRAM_OF(qemu, "qemu\0-one-insn-per-tb\0app\0-L\0x"), "app");
    assert_string_equal(PROGRAM_OF(qemu, "qemu\0--\0app"), "app");
    assert_string_equal(PROGRAM_OF("/opt/qemu-arm", "qemu-arm\0/bin/app\0app"), "/bin/app");
}

static void another_program_is_itself(void **state) {
    (void)state;
    assert_null(PROGRAM_OF("/usr/bin/qemu-system-x86_64", "qemu-system-x86_64\0disk"));
    assert_null(PROGRAM_OF("/usr/bin/qemu-img", "qemu-img\0info"));
    assert_null(PROGRAM_OF("/usr/bin/python3", "python3\0app"));
}

static void arguments_without_a_program_name_none(void **state) {
    (void)state;
    static const char *const qemu = "/usr/bin/qemu-x86_64";
    assert_null(PROGRAM_OF(qemu, "qemu-x86_64"));
    assert_null(PROGRAM_OF(qemu, "qemu-x86_64\0-version"));
    assert_null(PROGRAM_OF(qemu, "qemu-x86_64\0-L"));
    assert_null(PROGRAM_OF(qemu, "qemu-x86_64\0-L\0/sys"));
    assert_null(emulated_program(qemu, "", 0));
    assert_null(emulated_program(qemu, "qemu\0app", 8)); /* the arguments are cut */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_emulator_is_the_program_that_it_emulates),
        cmocka_unit_test(another_program_is_itself),
        cmocka_unit_test(arguments_without_a_program_name_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
