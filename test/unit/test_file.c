/* Tests otlp_file: a record is in the file as a whole or not at all, whatever the file is. */
#include "unit.h"

#include "export/append_file.h"
#include "export/file_export.h"
#include "export/standard_output.h"
#include "fake_capture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char folder[] = "/tmp/test_file.XXXXXX";
static char content[1 << 20];

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") == 0 ? system(command) : -1;
}

/* Returns the file's text, which is in `content` until the next call; "(none)" if there is no file.
 */
static const char *read_back(const char *path) {
    FILE *const file = fopen(path, "r");
    if (!file)
        return "(none)";
    content[fread(content, 1, sizeof content - 1, file)] = 0;
    fclose(file);
    return content;
}

static void write_file(const char *path, const char *text) {
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int append(const char *path, const char *text) {
    const struct iovec pieces[] = {{(void *)(uintptr_t)text, strlen(text)},
                                   {(void *)(uintptr_t) "\n", 1}};
    return append_file(path, true, pieces, 2);
}

/* --- appending --- */

static void records_are_appended(void **state) {
    (void)state;
    struct stat status;
    umask(0);
    assert_int_equal(append("new", "one"), 0);
    assert_int_equal(append("new", "two"), 0);
    assert_string_equal(read_back("new"), "one\ntwo\n");
    assert_int_equal(stat("new", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void an_unfinished_line_stays_alone(void **state) {
    (void)state;
    write_file("cut", "{\"half");
    assert_int_equal(append("cut", "{}"), 0);
    assert_int_equal(append("cut", "{}"), 0);
    assert_string_equal(read_back("cut"), "{\"half\n{}\n{}\n");
}

static void no_descriptor_is_left(void **state) {
    (void)state;
    const int before = dup(0);
    close(before);
    assert_int_equal(append("new", "three"), 0);
    assert_int_equal(append("/", "x"), -EISDIR);
    assert_int_equal(append("/dev/null", "x"), -ENOTSUP);
    const int after = dup(0);
    close(after);
    assert_int_equal(before, after);
    assert_int_equal(fcntl(100, F_GETFD), -1);
}

static void only_regular_files_are_taken(void **state) {
    (void)state;
    write_file("target", "mine\n");
    assert_int_equal(symlink("target", "link"), 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(append("link", "x"), -ELOOP);
    assert_string_equal(read_back("target"), "mine\n");
    assert_int_equal(append("fifo", "x"), -ENOTSUP);
    assert_int_equal(append("no/such/folder", "x"), -ENOENT);
    assert_int_equal(append("target/x", "x"), -ENOTDIR);
}

static int lock_refusal; /* the file system's error for a lock; 0: it has locks */

/* Replaces libc's function. */
int flock(int file, int operation) {
    if (!lock_refusal)
        return (int)syscall(SYS_flock, file, operation);
    errno = lock_refusal;
    return -1;
}

/* Network file systems refuse a lock in differing ways. */
static void a_file_system_without_locks_takes_exports(void **state) {
    static const int errors[] = {ENOLCK, EOPNOTSUPP, ENOSYS};
    (void)state;
    write_file("unlocked", "");
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        lock_refusal = errors[i];
        assert_int_equal(append("unlocked", "x"), 0);
    }
    lock_refusal = 0;
    assert_string_equal(read_back("unlocked"), "x\nx\nx\n");
}

static void one_writer_at_a_time(void **state) {
    (void)state;
    write_file("locked", "");
    const int other = open("locked", O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(other, LOCK_EX), 0);
    assert_int_equal(append("locked", "x"), -EWOULDBLOCK);
    assert_string_equal(read_back("locked"), "");
    flock(other, LOCK_UN);
    assert_int_equal(append("locked", "x"), 0);
    close(other);
}

/* Sets the limit on the size of files: the kernel writes the bytes that fit below it, and refuses
 * the rest with SIGXFSZ. */
static void set_limit(rlim_t bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static volatile sig_atomic_t signals;

static void count_signal(int number) {
    (void)number;
    signals++;
}

/* Blocks a signal, as the helper does, the thread that writes the files. */
static void block(int number) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    assert_int_equal(sigprocmask(SIG_BLOCK, &one, NULL), 0);
}

static void what_does_not_fit_is_cut_off(void **state) {
    (void)state;
    static char large[5000];
    memset(large, 'x', sizeof large - 1);
    signal(SIGXFSZ, count_signal);
    block(SIGXFSZ);
    assert_int_equal(append("small", "fits"), 0);
    set_limit(4096);
    assert_int_equal(append("small", large), -EFBIG);
    assert_string_equal(read_back("small"), "fits\n");
    assert_int_equal(append("small", "fits too"), 0);
    set_limit(RLIM_INFINITY);
    assert_string_equal(read_back("small"), "fits\nfits too\n");
    assert_int_equal(signals, 0);
}

/* --- the exporter --- */

static const char *const plain[] = {"OTEL_PROFILES_EXPORTER=otlp_file",
                                    "OTEL_PROFILER_FILE=named.jsonl", NULL};

static struct capture_api api;

static struct file_export *open_export(const char *const *environment) {
    api = fake_capture(environment);
    fake.log = (struct log){.level = LOG_INFO, .file = "log"};
    unlink("log");
    origin_remember(&fake.origin);
    struct file_export *const file = file_export_open(&api, "app");
    assert_non_null(file);
    return file;
}

static void lines_in_a_named_file(void **state) {
    (void)state;
    struct file_export *const file = open_export(plain);
    assert_int_equal(chdir("/"), 0); /* daemons do so */
    file_export_write(file, "{\"a\":1}", 7, 10);
    file_export_write(file, "{}", 2, 10);
    assert_int_equal(chdir(folder), 0);
    assert_string_equal(read_back("named.jsonl"), "{\"a\":1}\n{}\n");
    assert_string_equal(read_back("log"), "(none)");
    assert_int_equal(fake.dropped[DROP_FILE], 0);
    assert_int_equal(fake.lock_depth, 0);
    file_export_close(file);
}

static void messages_behind_their_length(void **state) {
    (void)state;
    const char *const environment[] = {"OTEL_PROFILER_FILE_FORMAT=protobuf", NULL};
    char name[64];
    snprintf(name, sizeof name, "otelprof-app-%d.otlp", (int)getpid());
    struct file_export *const file = open_export(environment);
    file_export_write(file, "abc", 3, 1);
    file_export_write(file, "de", 2, 1);
    read_back(name);
    assert_memory_equal(content, "\0\0\0\3abc\0\0\0\2de", 13);
    file_export_close(file);
}

static void a_name_of_our_own(void **state) {
    (void)state;
    const char *const environment[] = {NULL};
    char name[64];
    snprintf(name, sizeof name, "otelprof-app-%d.jsonl", (int)getpid());
    struct file_export *const file = open_export(environment);
    file_export_write(file, "{}", 2, 1);
    assert_string_equal(read_back(name), "{}\n");
    file_export_close(file);
}

static void trouble_is_logged_once_and_counted(void **state) {
    (void)state;
    const char *const environment[] = {"OTEL_PROFILER_FILE=later/profiles", NULL};
    struct file_export *const file = open_export(environment);
    file_export_write(file, "{1}", 3, 5);
    file_export_write(file, "{2}", 3, 7);
    assert_int_equal(fake.dropped[DROP_FILE], 12);
    assert_int_equal(fake.answered, 0);
    assert_int_equal(mkdir("later", 0700), 0);
    file_export_write(file, "{3}", 3, 9);
    assert_string_equal(read_back("later/profiles"), "{3}\n");
    assert_int_equal(fake.dropped[DROP_FILE], 12);
    assert_int_equal(fake.answered, 1);
    read_back("log");
    assert_non_null(strstr(content, "/later/profiles (No such file or directory)"));
    assert_null(strstr(strstr(content, "cannot") + 1, "cannot"));
    assert_non_null(strstr(content, "being written again"));
    file_export_close(file);
}

static int lines_in_log(void) {
    int lines = 0;
    for (const char *at = read_back("log"); *at; at++)
        lines += *at == '\n';
    return lines;
}

/* Acts as a nearly full disk, which takes small exports and refuses large ones in turns. */
static void coming_and_going_is_not_told_for_ever(void **state) {
    (void)state;
    const char *const environment[] = {"OTEL_PROFILER_FILE=changing/profiles", NULL};
    struct file_export *const file = open_export(environment);
    for (int i = 0; i < 5; i++) {
        file_export_write(file, "{}", 2, 2);
        assert_int_equal(mkdir("changing", 0700), 0);
        file_export_write(file, "{}", 2, 2);
        assert_int_equal(unlink("changing/profiles"), 0);
        assert_int_equal(rmdir("changing"), 0);
    }
    assert_int_equal(fake.dropped[DROP_FILE], 10);
    assert_int_equal(lines_in_log(), 2);
    file_export_close(file);
}

static void a_busy_file_is_waited_for(void **state) {
    (void)state;
    struct file_export *const file = open_export(plain);
    write_file("named.jsonl", "");
    const int other = open("named.jsonl", O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(other, LOCK_EX), 0);
    file_export_write(file, "{}", 2, 3);
    assert_int_equal(fake.dropped[DROP_FILE], 3);
    assert_int_equal(fake.lock_depth, 0);
    close(other);
    file_export_write(file, "{}", 2, 3);
    assert_string_equal(read_back("named.jsonl"), "{}\n");
    file_export_close(file);
}

static void a_closed_lock_is_respected(void **state) {
    (void)state;
    struct file_export *const file = open_export(plain);
    unlink("named.jsonl");
    fake.lock_closed = true;
    file_export_write(file, "{}", 2, 3);
    assert_string_equal(read_back("named.jsonl"), "(none)");
    assert_string_equal(read_back("log"), "(none)");
    file_export_close(file);
}

/* --- standard output --- */

static const char *const to_output[] = {"OTEL_PROFILER_FILE=stdout", NULL};
static int saved_output;
static int pipe_ends[2];

/* Makes standard output a pipe; cmocka's own output waits until the file is back. */
static struct file_export *open_on_pipe(void) {
    fflush(stdout);
    saved_output = dup(1);
    assert_int_equal(pipe(pipe_ends), 0);
    dup2(pipe_ends[1], 1);
    close(pipe_ends[1]);
    return open_export(to_output);
}

static void restore_output(void) {
    dup2(saved_output, 1);
    close(saved_output);
    close(pipe_ends[0]);
}

struct taken {
    char *bytes;
    size_t size;
};

static void *take_all(void *arg) {
    struct taken *const taken = arg;
    ssize_t got;
    while ((got = read(pipe_ends[0], taken->bytes + taken->size, 1 << 16)) > 0)
        taken->size += (size_t)got;
    return NULL;
}

static void a_line_larger_than_the_pipe(void **state) {
    (void)state;
    enum { SIZE = 300000 };
    struct taken taken = {malloc(SIZE + (1 << 17)), 0};
    char *const line = malloc(SIZE);
    pthread_t reader;
    memset(line, 'y', SIZE);
    struct file_export *const file = open_on_pipe();
    pthread_create(&reader, NULL, take_all, &taken);
    file_export_write(file, line, SIZE, 1);
    const uint64_t dropped = fake.dropped[DROP_FILE];
    dup2(saved_output, 1); /* closes the last writer */
    pthread_join(reader, NULL);
    restore_output();
    assert_int_equal(dropped, 0);
    assert_int_equal(taken.size, SIZE + 1);
    assert_memory_equal(taken.bytes, line, SIZE);
    assert_int_equal(taken.bytes[SIZE], '\n');
    file_export_close(file);
    free(taken.bytes);
    free(line);
}

static void an_unread_pipe_is_given_up_and_the_next_line_is_whole(void **state) {
    (void)state;
    enum { SIZE = 100000 };
    static char bytes[SIZE + 64];
    char *const line = malloc(SIZE);
    memset(line, 'z', SIZE);
    struct file_export *const file = open_on_pipe();
    file_export_write(file, line, SIZE, 4);
    const uint64_t dropped = fake.dropped[DROP_FILE];
    fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
    size_t size = 0;
    ssize_t got;
    while ((got = read(pipe_ends[0], bytes + size, sizeof bytes - size)) > 0)
        size += (size_t)got;
    file_export_write(file, "{}", 2, 4);
    got = read(pipe_ends[0], bytes + size, sizeof bytes - size);
    restore_output();
    assert_int_equal(dropped, 4);
    assert_in_range(size, 1, SIZE - 1);
    assert_int_equal(got, 4);
    assert_memory_equal(bytes + size, "\n{}\n", 4);
    file_export_close(file);
    free(line);
}

static void a_reader_that_is_gone_is_no_signal(void **state) {
    (void)state;
    signal(SIGPIPE, count_signal);
    block(SIGPIPE);
    struct file_export *const file = open_on_pipe();
    close(pipe_ends[0]);
    file_export_write(file, "{}", 2, 4);
    const uint64_t dropped = fake.dropped[DROP_FILE];
    restore_output();
    assert_int_equal(dropped, 4);
    assert_int_equal(signals, 0);
    file_export_close(file);
}

/* Puts a file of the program at descriptor 1, as a program does that closes standard output. */
static void another_file_on_the_descriptor_is_left_alone(void **state) {
    (void)state;
    struct file_export *const file = open_on_pipe();
    write_file("data", "");
    const int data = open("data", O_RDWR | O_CLOEXEC);
    dup2(data, 1);
    close(data);
    file_export_write(file, "{}", 2, 4);
    const uint64_t dropped = fake.dropped[DROP_FILE];
    restore_output();
    assert_int_equal(dropped, 4);
    assert_string_equal(read_back("data"), "");
    file_export_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_appended),
        cmocka_unit_test(an_unfinished_line_stays_alone),
        cmocka_unit_test(no_descriptor_is_left),
        cmocka_unit_test(only_regular_files_are_taken),
        cmocka_unit_test(a_file_system_without_locks_takes_exports),
        cmocka_unit_test(one_writer_at_a_time),
        cmocka_unit_test(what_does_not_fit_is_cut_off),
        cmocka_unit_test(lines_in_a_named_file),
        cmocka_unit_test(messages_behind_their_length),
        cmocka_unit_test(a_name_of_our_own),
        cmocka_unit_test(trouble_is_logged_once_and_counted),
        cmocka_unit_test(coming_and_going_is_not_told_for_ever),
        cmocka_unit_test(a_busy_file_is_waited_for),
        cmocka_unit_test(a_closed_lock_is_respected),
        cmocka_unit_test(a_line_larger_than_the_pipe),
        cmocka_unit_test(an_unread_pipe_is_given_up_and_the_next_line_is_whole),
        cmocka_unit_test(a_reader_that_is_gone_is_no_signal),
        cmocka_unit_test(another_file_on_the_descriptor_is_left_alone),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
