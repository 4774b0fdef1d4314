/* Tests the watched file: its present lines hold, but only if no other user can have written them.
 * The test needs two users: root runs it, and gives files to the other user with chown. */
#include "unit.h"

#include "control/control_file.h"
#include "fake_capture.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OTHER = 65534 };

static struct capture_api api;
static struct control_file file;
static char folder[64];
static char path[128];
static char variable[256];
static char log_path[128];

static void put(const char *text) {
    FILE *const written = fopen(path, "w");
    assert_non_null(written);
    assert_int_equal(fwrite(text, 1, strlen(text), written), strlen(text));
    fclose(written);
}

static bool clock_stands; /* all changes of files come within one tick */

/* Replaces libc's function. */
int statx(int at, const char *restrict name, int flags, unsigned wanted,
          struct statx *restrict status) {
    const long result = syscall(SYS_statx, at, name, flags, wanted, status);
    if (clock_stands)
        status->stx_mtime = status->stx_ctime = (struct statx_timestamp){.tv_sec = 1};
    return (int)result;
}

static int begin(void **state) {
    (void)state;
    clock_stands = false;
    strcpy(folder, "/tmp/otelprof-control-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/control", folder);
    snprintf(log_path, sizeof log_path, "/tmp/otelprof-control-%d.log", (int)getpid());
    snprintf(variable, sizeof variable, "OTEL_PROFILER_CONTROL_FILE=%s", path);
    const char *const environment[] = {variable, NULL};
    api = fake_capture(environment);
    log_init(&fake.log, LOG_DEBUG, log_path);
    file = control_file_open(&api);
    return 0;
}

static int end(void **state) {
    (void)state;
    unlink(log_path);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* Returns what has been logged since the last call. */
static const char *said(void) {
    static char text[8192];
    FILE *const read = fopen(log_path, "r");
    const size_t size = read ? fread(text, 1, sizeof text - 1, read) : 0;
    text[size] = 0;
    if (read)
        fclose(read);
    unlink(log_path);
    return text;
}

static bool says(const char *words) {
    return strstr(said(), words);
}

static bool sets(enum settable settable) {
    return file.overlay.has & (1u << settable);
}

/* --- its lines --- */

static void its_lines_hold(void **state) {
    (void)state;
    put("# of this service\n\nOTEL_PROFILER_START=off\nOTEL_PROFILER_CPU_FREQUENCY=500");
    assert_true(control_file_poll(&file));
    assert_int_equal(file.overlay.has, 1u << SETTABLE_start | 1u << SETTABLE_cpu_frequency);
    assert_int_equal(file.overlay.values.start, START_OFF);
    assert_int_equal(file.overlay.values.cpu_frequency, 500);
}

static void a_wrong_line_is_said_and_the_others_hold(void **state) {
    (void)state;
    put("OTEL_PROFILER_START=maybe\nOTEL_PROFILER_CPU_FREQUENCY=500\n"
        "OTEL_PROFILER_TYPES=cpu,threads\n");
    assert_true(control_file_poll(&file));
    assert_int_equal(file.overlay.has, 1u << SETTABLE_cpu_frequency);
    const char *const text = said();
    char line[256];
    snprintf(line, sizeof line,
             "warn: OTEL_PROFILER_CONTROL_FILE: %s:1: OTEL_PROFILER_START=\"maybe\" is neither on "
             "nor off; the line is ignored\n",
             path);
    assert_non_null(strstr(text, line));
    assert_non_null(strstr(text, ":3: OTEL_PROFILER_TYPES=\"cpu,threads\" has a type that was not "
                                 "in OTEL_PROFILER_TYPES when the program started; the line"));
    assert_false(control_file_poll(&file));
    assert_string_equal(said(), ""); /* the line is logged once */
}

static void many_wrong_lines_are_few_warnings(void **state) {
    (void)state;
    put("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n");
    assert_true(control_file_poll(&file));
    const char *const text = said();
    assert_non_null(strstr(text, ":8: "));
    assert_null(strstr(text, ":9: "));
    assert_non_null(strstr(text, "has more such lines; they are ignored\n"));
}

/* --- when it changes --- */

static void an_unchanged_file_is_not_read_again(void **state) {
    (void)state;
    put("OTEL_PROFILER_START=off\n");
    assert_true(control_file_poll(&file));
    assert_true(file.next > monotonic_nano() + NANO_PER_SECOND / 2);
    file.overlay.has = 0;
    assert_false(control_file_poll(&file));
    assert_int_equal(file.overlay.has, 0);
}

static void a_second_change_within_a_tick_is_seen(void **state) {
    (void)state;
    clock_stands = true;
    put("OTEL_PROFILER_CPU_FREQUENCY=100\n");
    assert_true(control_file_poll(&file));
    put("OTEL_PROFILER_CPU_FREQUENCY=200\n");
    assert_true(control_file_poll(&file));
    assert_int_equal(file.overlay.values.cpu_frequency, 200);
    put("OTEL_PROFILER_CPU_FREQUENCY=x00\n");
    assert_true(control_file_poll(&file));
    assert_false(sets(SETTABLE_cpu_frequency));
    assert_true(says("is not a frequency"));
    assert_false(control_file_poll(&file));
    assert_string_equal(said(), ""); /* the line is logged once */
}

/* Polls a file whose last change is older than two seconds, the coarsest tick of a file system:
 * from then on the file's times show each change. */
static void an_old_change_costs_one_call_a_check(void **state) {
    (void)state;
    clock_stands = true;
    put("OTEL_PROFILER_CPU_FREQUENCY=100\n");
    assert_true(control_file_poll(&file));
    for (int second = 0; second < 3; second++)
        assert_false(control_file_poll(&file));
    assert_int_equal(chmod(path, 0646), 0); /* a file that is not read is not refused */
    assert_false(control_file_poll(&file));
    assert_null(file.refusal);
}

static void a_removed_line_no_longer_holds(void **state) {
    (void)state;
    put("OTEL_PROFILER_START=off\nOTEL_LOG_LEVEL=none\n");
    assert_true(control_file_poll(&file));
    put("OTEL_PROFILER_START=off\n");
    assert_true(control_file_poll(&file));
    assert_true(sets(SETTABLE_start) && !sets(SETTABLE_log_level));
    assert_int_equal(unlink(path), 0);
    (void)said();
    assert_true(control_file_poll(&file));
    assert_int_equal(file.overlay.has, 0);
    assert_true(says("debug: OTEL_PROFILER_CONTROL_FILE: ")); /* the log has no warning */
    assert_false(control_file_poll(&file));
    put("OTEL_PROFILER_START=off\n"); /* the file comes back */
    assert_true(control_file_poll(&file));
    assert_true(sets(SETTABLE_start));
}

/* Writes a version as Kubernetes does: the file keeps its name, and "..data" leads to another
 * folder. */
static void write_version(const char *name, const char *text) {
    char at[160];
    snprintf(at, sizeof at, "%s/%s", folder, name);
    assert_int_equal(mkdir(at, 0755), 0);
    snprintf(path, sizeof path, "%s/%s/control", folder, name);
    put(text);
    snprintf(at, sizeof at, "%s/..data_tmp", folder);
    assert_int_equal(symlink(name, at), 0);
    snprintf(path, sizeof path, "%s/..data", folder);
    assert_int_equal(rename(at, path), 0);
    snprintf(path, sizeof path, "%s/control", folder);
}

static void a_swapped_link_is_a_change(void **state) {
    (void)state;
    write_version("..1", "OTEL_PROFILER_CPU_FREQUENCY=100\n");
    assert_int_equal(symlink("..data/control", path), 0);
    assert_true(control_file_poll(&file));
    assert_int_equal(file.overlay.values.cpu_frequency, 100);
    write_version("..2", "OTEL_PROFILER_CPU_FREQUENCY=200\n");
    assert_true(control_file_poll(&file));
    assert_int_equal(file.overlay.values.cpu_frequency, 200);
    assert_false(control_file_poll(&file));
}

/* --- what is refused --- */

static void refused(const char *why) {
    assert_true(control_file_poll(&file));
    assert_int_equal(file.overlay.has, 0);
    const char *const text = said();
    assert_non_null(strstr(text, "warn: OTEL_PROFILER_CONTROL_FILE: "));
    assert_non_null(strstr(text, why));
    assert_non_null(strstr(text, "; it sets nothing\n"));
}

static const char others[] = "others than root and the user of the process can write it or put "
                             "another in its place";

static void taken(void) {
    assert_true(control_file_poll(&file));
    assert_true(sets(SETTABLE_start));
}

static void a_file_that_others_can_write_is_refused(void **state) {
    (void)state;
    put("OTEL_PROFILER_START=off\n");
    taken();
    assert_int_equal(chmod(path, 0646), 0);
    refused(others);
    assert_int_equal(chmod(path, 0644), 0);
    taken();
    assert_int_equal(chmod(folder, 0777), 0);
    put("OTEL_PROFILER_START=off\n\n");
    refused(others);
}

/* Repairs the folder alone: the identity of the file stays the same. */
static void a_refused_file_is_taken_once_its_folder_is_repaired(void **state) {
    (void)state;
    put("OTEL_PROFILER_START=off\n");
    assert_int_equal(chmod(folder, 0777), 0);
    refused(others);
    for (int i = 0; i < 3; i++)
        assert_false(control_file_poll(&file));
    assert_string_equal(said(), ""); /* the refusal is logged once */
    assert_int_equal(chmod(folder, 0700), 0);
    taken();
    assert_false(says("warn: "));
    assert_false(control_file_poll(&file));
    assert_int_equal(chmod(path, 0646), 0);
    refused(others); /* the refusal is logged again */
    unlink(path);
    assert_true(control_file_poll(&file));
    assert_false(control_file_poll(&file)); /* there is nothing to try again */
}

static void a_file_of_another_is_refused(void **state) {
    (void)state;
    put("OTEL_PROFILER_START=off\n");
    if (chown(path, OTHER, OTHER) == 0)
        refused(others);
}

static void files_that_are_no_text_are_refused(void **state) {
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0); /* opening does not wait for the fifo's other end */
    refused("is no regular file");
    unlink(path);
    put("x");
    assert_int_equal(truncate(path, (64 << 10) + 1), 0);
    refused("is too large");
    unlink(path);
    assert_int_equal(symlink(path, path), 0);
    refused("is a link that leads nowhere");
}

static void a_relative_path_is_refused(void **state) {
    (void)state;
    put("OTEL_PROFILER_START=off\n");
    assert_int_equal(chdir(folder), 0);
    file.path = "control";
    refused("is no absolute path");
    assert_int_equal(chdir("/"), 0);
}

/* Polls a file in a ConfigMap's folder, whose mode lets every user write, and which is mounted
 * read-only. Runs in a child, which has mounts of its own. Returns 1 if the file's line holds, 0 if
 * not, 77 if this machine allows no mounts. */
static int look_at_mount(unsigned long more) {
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_REC | MS_PRIVATE, "") != 0)
        return 77;
    if (mount(folder, folder, "", MS_BIND, "") != 0 ||
        mount("", folder, "", MS_REMOUNT | MS_BIND | more, "") != 0)
        return 77;
    (void)control_file_poll(&file);
    return sets(SETTABLE_start);
}

static int seen_in_child(unsigned long more) {
    int status;
    const pid_t child = fork();
    if (child == 0)
        _exit(look_at_mount(more));
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void a_read_only_mount_vouches_for_its_folder(void **state) {
    (void)state;
    put("OTEL_PROFILER_START=off\n");
    assert_int_equal(chmod(folder, 0777), 0);
    if (geteuid() != 0 || seen_in_child(0) == 77)
        return; /* this machine allows no mounts here */
    assert_int_equal(seen_in_child(MS_RDONLY), 1);
    assert_int_equal(seen_in_child(MS_NOSUID), 0);
    (void)control_file_poll(&file);
    assert_false(sets(SETTABLE_start)); /* without a mount */
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(its_lines_hold),
        TEST(a_wrong_line_is_said_and_the_others_hold),
        TEST(many_wrong_lines_are_few_warnings),
        TEST(an_unchanged_file_is_not_read_again),
        TEST(a_second_change_within_a_tick_is_seen),
        TEST(an_old_change_costs_one_call_a_check),
        TEST(a_removed_line_no_longer_holds),
        TEST(a_swapped_link_is_a_change),
        TEST(a_file_that_others_can_write_is_refused),
        TEST(a_refused_file_is_taken_once_its_folder_is_repaired),
        TEST(a_file_of_another_is_refused),
        TEST(files_that_are_no_text_are_refused),
        TEST(a_relative_path_is_refused),
        TEST(a_read_only_mount_vouches_for_its_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
