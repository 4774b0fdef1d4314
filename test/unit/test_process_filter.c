/* Tests which programs are profiled: by name, by path, or by the name under which they were
 * started. */
#include "unit.h"

#include "process/eligibility/process_filter.h"

static enum filter_result choose(const char *file, const char *started_by, const char *include,
                                 const char *exclude) {
    const struct program program = {file, started_by};
    return process_filter_apply(&program, include, exclude);
}

struct expectation {
    const char *file;
    const char *started_by;
    enum filter_result expected;
};

static void
expect(enum filter_result (*choose_of)(const struct program *, const char *, const char *),
       const struct expectation *cases, size_t count, const char *include, const char *exclude) {
    for (size_t i = 0; i < count; i++) {
        const struct program program = {cases[i].file, cases[i].started_by};
        if (choose_of(&program, include, exclude) != cases[i].expected)
            fail_msg("%s", cases[i].file);
    }
}

static void the_default_list(void **state) {
    (void)state;
    static const struct expectation cases[] = {
        {"/usr/bin/dash", "/bin/sh", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/usr/local/bin/bash", "bash", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/bin/busybox", "/bin/ls", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/ls", "/usr/bin/ls", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/[", "/usr/bin/[", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/sbin/apk", "apk", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/dpkg-deb", "dpkg-deb", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/tini", "/tini", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/opt/tini-static-amd64", "/opt/tini-static-amd64", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/dumb-init", "dumb-init", PROCESS_EXCLUDED_BY_DEFAULT},
        /* systemd's programs in the system's folders; then users' own programs, whatever their
         * names */
        {"/usr/lib/systemd/systemd", "/sbin/init", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/lib/systemd/systemd-journald", "/lib/systemd/systemd-journald",
         PROCESS_EXCLUDED_BY_DEFAULT},
        {"/usr/lib/systemd/system-generators/x", "x", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/systemd-run", "systemd-run", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/udevadm", "/lib/systemd/systemd-udevd", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/usr/bin/journalctl", "journalctl", PROCESS_EXCLUDED_BY_DEFAULT},
        {"/opt/lib/systemd/shop", "shop", PROCESS_PROFILED},
        {"/srv/journalctl", "journalctl", PROCESS_PROFILED},
        {"/home/me/test", "./test", PROCESS_PROFILED},
        {"/usr/local/bin/users", "users", PROCESS_PROFILED},
        {"/usr/bin/sub/ls", "ls", PROCESS_PROFILED},
        {"/usr/bin/python3.11", "/srv/install", PROCESS_PROFILED},
        {"/usr/bin/perl", "/usr/bin/perl", PROCESS_PROFILED},
        {"/usr/sbin/nginx", "nginx", PROCESS_PROFILED},
        {"", "", PROCESS_PROFILED},
        {"", "/bin/ls", PROCESS_PROFILED},
    };
    expect(process_filter_apply, cases, sizeof cases / sizeof *cases, "", "default");
}

static enum filter_result choose_host_wide(const char *file, const char *started_by,
                                           const char *include, const char *exclude) {
    const struct program program = {file, started_by};
    return process_filter_apply_host_wide(&program, include, exclude);
}

static void host_wide_included_programs_alone_are_profiled(void **state) {
    (void)state;
    static const char app[] = "/opt/shop/app";
    assert_int_equal(choose_host_wide(app, app, "", "none"), PROCESS_NOT_INCLUDED);
    assert_int_equal(choose_host_wide(app, app, "other", "none"), PROCESS_NOT_INCLUDED);
    assert_int_equal(choose_host_wide(app, app, "app", "default"), PROCESS_PROFILED);
    assert_int_equal(choose_host_wide(app, app, "/opt/*", "none"), PROCESS_PROFILED);
    assert_int_equal(choose_host_wide(app, app, "/opt/*", "default,app"), PROCESS_EXCLUDED);
}

static void host_wide_the_machines_own_services_are_never_profiled(void **state) {
    (void)state;
    static const struct expectation cases[] = {
        {"/usr/lib/systemd/systemd", "/sbin/init", PROCESS_NEVER_PROFILED},
        {"/usr/bin/dash", "/bin/sh", PROCESS_NEVER_PROFILED},
        {"/usr/bin/ls", "ls", PROCESS_NEVER_PROFILED},
        {"/usr/bin/dpkg", "dpkg", PROCESS_NEVER_PROFILED},
        {"/usr/sbin/sshd", "sshd", PROCESS_NEVER_PROFILED},
        {"/usr/lib/openssh/sshd-session", "sshd-session", PROCESS_NEVER_PROFILED},
        {"/usr/bin/dbus-daemon", "dbus-daemon", PROCESS_NEVER_PROFILED},
        {"/usr/bin/dbus-broker-launch", "dbus-broker-launch", PROCESS_NEVER_PROFILED},
        {"/opt/cni/bin/containerd-shim-runc-v2", "x", PROCESS_NEVER_PROFILED},
        {"/usr/local/sbin/runc", "runc", PROCESS_NEVER_PROFILED},
        {"/usr/bin/crun", "crun", PROCESS_NEVER_PROFILED},
        {"/usr/local/bin/kubelet", "kubelet", PROCESS_NEVER_PROFILED},
        {"/usr/bin/dockerd", "dockerd", PROCESS_NEVER_PROFILED},
        {"/usr/bin/crio", "crio", PROCESS_NEVER_PROFILED},
        {"/usr/libexec/crio/conmon", "conmon", PROCESS_NEVER_PROFILED},
        {"/usr/bin/login", "login", PROCESS_NEVER_PROFILED},
        {"/usr/bin/python3.11", "/usr/bin/dnf", PROCESS_NEVER_PROFILED},
        {"/usr/bin/python3.11", "/usr/bin/unattended-upgrade", PROCESS_NEVER_PROFILED},
        {"/usr/bin/python3.11", "/opt/shop/init", PROCESS_PROFILED},
        {"/opt/shop/login", "/opt/shop/login", PROCESS_PROFILED},
    };
    expect(process_filter_apply_host_wide, cases, sizeof cases / sizeof *cases, "*", "none");
}

static void host_wide_without_proc_a_shell_is_known_by_its_other_name(void **state) {
    (void)state;
    assert_int_equal(choose_host_wide("", "/bin/bash", "*", "none"), PROCESS_NEVER_PROFILED);
    assert_int_equal(choose_host_wide("", "/lib/systemd/systemd", "*", "none"),
                     PROCESS_NEVER_PROFILED);
    assert_int_equal(choose_host_wide("", "runc", "*", "none"), PROCESS_NEVER_PROFILED);
    assert_int_equal(choose_host_wide("", "/opt/shop/app", "*", "none"), PROCESS_PROFILED);
}

static void words(void **state) {
    (void)state;
    assert_int_equal(choose("/bin/ls", "ls", "", "none"), PROCESS_PROFILED);
    assert_int_equal(choose("/bin/none", "none", "", "none"), PROCESS_PROFILED);
    assert_int_equal(choose("/bin/ls", "ls", "", "none,default"), PROCESS_EXCLUDED_BY_DEFAULT);
    assert_int_equal(choose("/bin/ls", "ls", "", "NONE, Default"), PROCESS_EXCLUDED_BY_DEFAULT);
    assert_int_equal(choose("/bin/ls", "ls", "", "a.out"), PROCESS_PROFILED);
    assert_int_equal(choose("/x/a.out", "a.out", "", "default, a.out"), PROCESS_EXCLUDED);
    assert_int_equal(choose("/x/default", "default", "", "default"), PROCESS_PROFILED);
}

static void the_word_default(void **state) {
    (void)state;
    assert_true(process_filter_has_default("default"));
    assert_true(process_filter_has_default("a.out, Default"));
    assert_false(process_filter_has_default("none"));
    assert_false(process_filter_has_default("default-*"));
    assert_false(process_filter_has_default(""));
}

static void names_and_paths(void **state) {
    (void)state;
    const char *const python = "/usr/bin/python3.11";
    assert_int_equal(choose(python, "/usr/bin/python3", "", "python3"), PROCESS_EXCLUDED);
    assert_int_equal(choose(python, "/usr/bin/python3", "", "python3.*"), PROCESS_EXCLUDED);
    assert_int_equal(choose(python, "./job.py", "", "job.py"), PROCESS_EXCLUDED);
    assert_int_equal(choose(python, "./job.py", "", "python3"), PROCESS_PROFILED);
    assert_int_equal(choose(python, "python3", "", "/usr/bin/*"), PROCESS_EXCLUDED);
    assert_int_equal(choose(python, "python3", "", "*/bin/python*"), PROCESS_EXCLUDED);
    assert_int_equal(choose(python, "python3", "", "/bin/*"), PROCESS_PROFILED);
    assert_int_equal(choose(python, "python3", "", "bin"), PROCESS_PROFILED);
    assert_int_equal(choose("", "/x/job", "", "*"), PROCESS_EXCLUDED);
    assert_int_equal(choose("", "", "", "*"), PROCESS_PROFILED);
}

static void include_wins(void **state) {
    (void)state;
    assert_int_equal(choose("/bin/bash", "/bin/bash", "bash", "default"), PROCESS_PROFILED);
    assert_int_equal(choose("/bin/bash", "./deploy", "x,deploy", "bash"), PROCESS_PROFILED);
    assert_int_equal(choose("/x/shop", "shop", "shop", "*"), PROCESS_PROFILED);
    assert_int_equal(choose("/x/cart", "cart", "shop", "*"), PROCESS_EXCLUDED);
    assert_int_equal(choose("/x/cart", "cart", "shop", "default"), PROCESS_PROFILED);
}

static void this_process(void **state) {
    (void)state;
    struct program program;
    char path[256];
    char little[8];
    const size_t size = sizeof path;
    assert_int_equal(process_filter_this_process("", "default", &program, path, size),
                     PROCESS_PROFILED);
    assert_int_equal(program.file[0], '/');
    assert_non_null(strstr(program.file, "/test_process_filter"));
    assert_non_null(strstr(program.started_by, "test_process_filter"));
    assert_int_equal(process_filter_this_process("", "test_pr*", &program, path, size),
                     PROCESS_EXCLUDED);
    (void)process_filter_this_process("", "x", &program, little, sizeof little);
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
