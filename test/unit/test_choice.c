/* Tests which programs are profiled: by name, by path, or by the name under which they were
 * started. */
#include "unit.h"

#include "process/eligibility/choice.h"

static enum choice choose(const char *file, const char *started_by, const char *include,
                          const char *exclude) {
    const struct program program = {file, started_by};
    return choice_of(&program, include, exclude);
}

struct expectation {
    const char *file;
    const char *started_by;
    enum choice expected;
};

static void expect(enum choice (*choose_of)(const struct program *, const char *, const char *),
                   const struct expectation *cases, size_t count, const char *include,
                   const char *exclude) {
    for (size_t i = 0; i < count; i++) {
        const struct program program = {cases[i].file, cases[i].started_by};
        if (choose_of(&program, include, exclude) != cases[i].expected)
            fail_msg("%s", cases[i].file);
    }
}

static void the_default_list(void **state) {
    (void)state;
    static const struct expectation cases[] = {
        {"/usr/bin/dash", "/bin/sh", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/usr/local/bin/bash", "bash", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/bin/busybox", "/bin/ls", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/ls", "/usr/bin/ls", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/[", "/usr/bin/[", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/sbin/apk", "apk", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/dpkg-deb", "dpkg-deb", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/tini", "/tini", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/opt/tini-static-amd64", "/opt/tini-static-amd64", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/dumb-init", "dumb-init", CHOICE_EXCLUDED_BY_DEFAULT},
        /* systemd's programs in the system's folders; then users' own programs, whatever their
         * names */
        {"/usr/lib/systemd/systemd", "/sbin/init", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/lib/systemd/systemd-journald", "/lib/systemd/systemd-journald",
         CHOICE_EXCLUDED_BY_DEFAULT},
        {"/usr/lib/systemd/system-generators/x", "x", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/systemd-run", "systemd-run", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/udevadm", "/lib/systemd/systemd-udevd", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/journalctl", "journalctl", CHOICE_EXCLUDED_BY_DEFAULT},
        {"/opt/lib/systemd/shop", "shop", CHOICE_PROFILED},
        {"/srv/journalctl", "journalctl", CHOICE_PROFILED},
        {"/home/me/test", "./test", CHOICE_PROFILED},
        {"/usr/local/bin/users", "users", CHOICE_PROFILED},
        {"/usr/bin/sub/ls", "ls", CHOICE_PROFILED},
        {"/usr/bin/python3.11", "/srv/install", CHOICE_PROFILED},
        {"/usr/bin/perl", "/usr/bin/perl", CHOICE_PROFILED},
        {"/usr/sbin/nginx", "nginx", CHOICE_PROFILED},
        {"", "", CHOICE_PROFILED},
        {"", "/bin/ls", CHOICE_PROFILED},
    };
    expect(choice_of, cases, sizeof cases / sizeof *cases, "", "default");
}

static enum choice choose_host_wide(const char *file, const char *started_by, const char *include,
                                    const char *exclude) {
    const struct program program = {file, started_by};
    return choice_of_host_wide(&program, include, exclude);
}

static void host_wide_included_programs_alone_are_profiled(void **state) {
    (void)state;
    static const char app[] = "/opt/shop/app";
    assert_int_equal(choose_host_wide(app, app, "", "none"), CHOICE_NOT_INCLUDED);
    assert_int_equal(choose_host_wide(app, app, "other", "none"), CHOICE_NOT_INCLUDED);
    assert_int_equal(choose_host_wide(app, app, "app", "default"), CHOICE_PROFILED);
    assert_int_equal(choose_host_wide(app, app, "/opt/*", "none"), CHOICE_PROFILED);
    assert_int_equal(choose_host_wide(app, app, "/opt/*", "default,app"), CHOICE_EXCLUDED);
}

static void host_wide_the_machines_own_services_are_never_profiled(void **state) {
    (void)state;
    static const struct expectation cases[] = {
        {"/usr/lib/systemd/systemd", "/sbin/init", CHOICE_NEVER},
        {"/usr/bin/dash", "/bin/sh", CHOICE_NEVER},
        {"/usr/bin/ls", "ls", CHOICE_NEVER},
        {"/usr/bin/dpkg", "dpkg", CHOICE_NEVER},
        {"/usr/sbin/sshd", "sshd", CHOICE_NEVER},
        {"/usr/lib/openssh/sshd-session", "sshd-session", CHOICE_NEVER},
        {"/usr/bin/dbus-daemon", "dbus-daemon", CHOICE_NEVER},
        {"/usr/bin/dbus-broker-launch", "dbus-broker-launch", CHOICE_NEVER},
        {"/opt/cni/bin/containerd-shim-runc-v2", "x", CHOICE_NEVER},
        {"/usr/local/sbin/runc", "runc", CHOICE_NEVER},
        {"/usr/bin/crun", "crun", CHOICE_NEVER},
        {"/usr/local/bin/kubelet", "kubelet", CHOICE_NEVER},
        {"/usr/bin/dockerd", "dockerd", CHOICE_NEVER},
        {"/usr/bin/crio", "crio", CHOICE_NEVER},
        {"/usr/libexec/crio/conmon", "conmon", CHOICE_NEVER},
        {"/usr/bin/login", "login", CHOICE_NEVER},
        {"/usr/bin/python3.11", "/usr/bin/dnf", CHOICE_NEVER},
        {"/usr/bin/python3.11", "/usr/bin/unattended-upgrade", CHOICE_NEVER},
        {"/usr/bin/python3.11", "/opt/shop/init", CHOICE_PROFILED},
        {"/opt/shop/login", "/opt/shop/login", CHOICE_PROFILED},
    };
    expect(choice_of_host_wide, cases, sizeof cases / sizeof *cases, "*", "none");
}

static void host_wide_without_proc_a_shell_is_known_by_its_other_name(void **state) {
    (void)state;
    assert_int_equal(choose_host_wide("", "/bin/bash", "*", "none"), CHOICE_NEVER);
    assert_int_equal(choose_host_wide("", "/lib/systemd/systemd", "*", "none"), CHOICE_NEVER);
    assert_int_equal(choose_host_wide("", "runc", "*", "none"), CHOICE_NEVER);
    assert_int_equal(choose_host_wide("", "/opt/shop/app", "*", "none"), CHOICE_PROFILED);
}

static void words(void **state) {
    (void)state;
    assert_int_equal(choose("/bin/ls", "ls", "", "none"), CHOICE_PROFILED);
    assert_int_equal(choose("/bin/none", "none", "", "none"), CHOICE_PROFILED);
    assert_int_equal(choose("/bin/ls", "ls", "", "none,default"), CHOICE_EXCLUDED_BY_DEFAULT);
    assert_int_equal(choose("/bin/ls", "ls", "", "NONE, Default"), CHOICE_EXCLUDED_BY_DEFAULT);
    assert_int_equal(choose("/bin/ls", "ls", "", "a.out"), CHOICE_PROFILED);
    assert_int_equal(choose("/x/a.out", "a.out", "", "default, a.out"), CHOICE_EXCLUDED);
    assert_int_equal(choose("/x/default", "default", "", "default"), CHOICE_PROFILED);
}

static void the_word_default(void **state) {
    (void)state;
    assert_true(choice_has_default("default"));
    assert_true(choice_has_default("a.out, Default"));
    assert_false(choice_has_default("none"));
    assert_false(choice_has_default("default-*"));
    assert_false(choice_has_default(""));
}

static void names_and_paths(void **state) {
    (void)state;
    const char *const python = "/usr/bin/python3.11";
    assert_int_equal(choose(python, "/usr/bin/python3", "", "python3"), CHOICE_EXCLUDED);
    assert_int_equal(choose(python, "/usr/bin/python3", "", "python3.*"), CHOICE_EXCLUDED);
    assert_int_equal(choose(python, "./job.py", "", "job.py"), CHOICE_EXCLUDED);
    assert_int_equal(choose(python, "./job.py", "", "python3"), CHOICE_PROFILED);
    assert_int_equal(choose(python, "python3", "", "/usr/bin/*"), CHOICE_EXCLUDED);
    assert_int_equal(choose(python, "python3", "", "*/bin/python*"), CHOICE_EXCLUDED);
    assert_int_equal(choose(python, "python3", "", "/bin/*"), CHOICE_PROFILED);
    assert_int_equal(choose(python, "python3", "", "bin"), CHOICE_PROFILED);
    assert_int_equal(choose("", "/x/job", "", "*"), CHOICE_EXCLUDED);
    assert_int_equal(choose("", "", "", "*"), CHOICE_PROFILED);
}

static void include_wins(void **state) {
    (void)state;
    assert_int_equal(choose("/bin/bash", "/bin/bash", "bash", "default"), CHOICE_PROFILED);
    assert_int_equal(choose("/bin/bash", "./deploy", "x,deploy", "bash"), CHOICE_PROFILED);
    assert_int_equal(choose("/x/shop", "shop", "shop", "*"), CHOICE_PROFILED);
    assert_int_equal(choose("/x/cart", "cart", "shop", "*"), CHOICE_EXCLUDED);
    assert_int_equal(choose("/x/cart", "cart", "shop", "default"), CHOICE_PROFILED);
}

static void this_process(void **state) {
    (void)state;
    struct program program;
    char path[256];
    char little[8];
    const size_t size = sizeof path;
    assert_int_equal(choice_of_this_process("", "default", &program, path, size), CHOICE_PROFILED);
    assert_int_equal(program.file[0], '/');
    assert_non_null(strstr(program.file, "/test_choice"));
    assert_non_null(strstr(program.started_by, "test_choice"));
    assert_int_equal(choice_of_this_process("", "test_ch*", &program, path, size), CHOICE_EXCLUDED);
    (void)choice_of_this_process("", "x", &program, little, sizeof little);
    assert_string_equal(program.file, ""); /* a path is kept as a whole or not at all */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_wide_included_programs_alone_are_profiled),
        cmocka_unit_test(host_wide_the_machines_own_services_are_never_profiled),
        cmocka_unit_test(host_wide_without_proc_a_shell_is_known_by_its_other_name),
        cmocka_unit_test(the_default_list),
        cmocka_unit_test(words),
        cmocka_unit_test(the_word_default),
        cmocka_unit_test(names_and_paths),
        cmocka_unit_test(include_wins),
        cmocka_unit_test(this_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
