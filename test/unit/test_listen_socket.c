/* Tests two processes that want to listen at one path at the same moment: one of them does. The
 * second acts between two steps of the first, within calls that replace libc's. */
#include "unit.h"

#include "fake_syscall.h"
#include "serve/listen_socket.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/otelprof-listen-XXXXXX";
static struct listen_address address = {.is_unix = true};
static struct listen_socket first, second;

/* Acts as the second process at the named moment, once; NULL: the second process does nothing. */
static void (*before_listen)(void);
static void (*after_bind)(void);
static void (*after_refusal)(void);
static void (*before_rename)(void);
static bool knows_no_flags; /* the file system knows no flags of renameat2(2) */
static int refuses_sockets; /* the file system's error for a socket; 0: none */
static bool other_user;     /* the process has another user than the files */
static int entries_to_come; /* entries of a large folder, listed before the real ones */

static void happen(void (**what)(void)) {
    void (*const now)(void) = *what;
    *what = NULL;
    if (now)
        now();
}

int listen(int descriptor, int backlog) {
    happen(&before_listen);
    return (int)bare_syscall(SYS_listen, descriptor, backlog, 0, 0, 0, 0);
}

int connect(int descriptor, const struct sockaddr *to, socklen_t size) {
    const long result = bare_syscall(SYS_connect, descriptor, (long)to, size, 0, 0, 0);
    const int saved = errno;
    if (result != 0 && saved == ECONNREFUSED)
        happen(&after_refusal);
    errno = saved;
    return (int)result;
}

int bind(int descriptor, const struct sockaddr *to, socklen_t size) {
    if (refuses_sockets) {
        errno = refuses_sockets;
        return -1;
    }
    const int result = (int)bare_syscall(SYS_bind, descriptor, (long)to, size, 0, 0, 0);
    if (result == 0)
        happen(&after_bind);
    return result;
}

struct dirent *readdir(DIR *entries) {
    static struct dirent other = {.d_name = "other"};
    struct dirent *(*next)(DIR *);
    void *const found = dlsym(RTLD_NEXT, "readdir");
    memcpy(&next, &found, sizeof next);
    if (entries_to_come == 0)
        return next(entries);
    entries_to_come--;
    return &other;
}

static long fake_syscall(long number, const long a[6]) {
    if (number == SYS_geteuid && other_user)
        return 12345;
    if (number == SYS_renameat2)
        happen(&before_rename);
    if (number == SYS_renameat2 && knows_no_flags && a[4] != 0)
        return refuse_syscall(EINVAL);
    return real_syscall(number, a);
}

static int make_tests_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_tests_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

static int begin(void **state) {
    (void)state;
    before_listen = after_bind = after_refusal = before_rename = NULL;
    knows_no_flags = other_user = false;
    entries_to_come = refuses_sockets = 0;
    snprintf(address.path, sizeof address.path, "%s/socket", folder);
    first = second = (struct listen_socket){.descriptor = -1, .folder = -1, .file = -1};
    return 0;
}

static int files(void) {
    DIR *const there = opendir(folder);
    int count = 0;
    assert_non_null(there);
    for (const struct dirent *it; (it = readdir(there));)
        count += strcmp(it->d_name, ".") != 0 && strcmp(it->d_name, "..") != 0;
    closedir(there);
    return count;
}

/* Closes both sockets. Returns the number of files that are left: 0 passes. */
static int end(void **state) {
    (void)state;
    listen_socket_close(&first);
    listen_socket_close(&second);
    (void)unlink(address.path);
    return files();
}

static struct sockaddr_un place(void) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const size_t size = strlen(address.path) + 1;
    assert_true(size <= sizeof to.sun_path);
    memcpy(to.sun_path, address.path, size);
    return to;
}

static int new_connection(void) {
    const struct sockaddr_un to = place();
    const int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(connection, (const struct sockaddr *)&to, sizeof to), 0);
    return connection;
}

/* Returns true if a connection to the path reaches the socket. */
static bool is_found(const struct listen_socket *it) {
    for (int taken; (taken = accept(it->descriptor, NULL, NULL)) >= 0;)
        close(taken); /* connections of processes that have checked the path */
    const int connection = new_connection();
    const int taken = accept(it->descriptor, NULL, NULL);
    close(connection);
    close(taken);
    return taken >= 0;
}

static void leave_dead_socket(void) {
    const struct sockaddr_un to = place();
    const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(dead, (const struct sockaddr *)&to, sizeof to), 0);
    close(dead);
}

static void second_comes(void) {
    assert_int_equal(listen_socket_open(&second, &address), 0);
}

static void assert_second_alone_is_there(void) {
    assert_int_equal(first.descriptor, -1);
    assert_false(listen_socket_is_lost(&second));
    assert_true(is_found(&second));
    assert_int_equal(files(), 1);
}

/* --- one process --- */

static void a_socket_is_its_users_alone(void **state) {
    struct stat status;
    const mode_t before = umask(0);
    (void)state;
    assert_int_equal(listen_socket_open(&first, &address), 0);
    umask(before);
    assert_int_equal(stat(address.path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_true(is_found(&first));
    assert_int_equal(files(), 1);
}

/* Compares the descriptor's path as `otelprof ps` does. */
static void its_descriptor_has_the_path(void **state) {
    char link[64];
    char path[LISTEN_PATH] = "";
    (void)state;
    leave_dead_socket();
    assert_int_equal(listen_socket_open(&first, &address), 0);
    snprintf(link, sizeof link, "/proc/self/fd/%d", first.file);
    assert_true(readlink(link, path, sizeof path - 1) > 0);
    assert_string_equal(path, address.path);
}

static void a_dead_socket_is_replaced(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        knows_no_flags = i;
        leave_dead_socket();
        assert_int_equal(listen_socket_open(&first, &address), 0);
        assert_true(is_found(&first));
        assert_int_equal(files(), 1);
        listen_socket_close(&first);
        assert_int_equal(files(), 0);
    }
}

static void a_file_that_is_no_socket_stays(void **state) {
    (void)state;
    fclose(fopen(address.path, "w"));
    assert_int_equal(listen_socket_open(&first, &address), -EEXIST);
    assert_int_equal(files(), 1);
}

static void a_live_socket_stays(void **state) {
    (void)state;
    assert_int_equal(listen_socket_open(&second, &address), 0);
    assert_int_equal(listen_socket_open(&first, &address), -LISTEN_TAKEN);
    assert_second_alone_is_there();
}

static void a_name_has_a_bound(void **state) {
    (void)state;
    memset(address.path + strlen(address.path), 'x', 108);
    assert_int_equal(listen_socket_open(&first, &address), -ENAMETOOLONG);
    assert_int_equal(files(), 0);
    address.path[strlen(folder) + 1 + 80] = 0;
    assert_int_equal(listen_socket_open(&first, &address), 0);
    assert_int_equal(files(), 1);
}

/* --- sockets that killed processes have left --- */

static char left_path[LISTEN_PATH];

/* Leaves a socket of that name, `seconds` old, at which no process listens. Sets *descriptor to it
 * for the caller to close; closes it if `descriptor` is NULL. */
static void leave(const char *name, int seconds, int *descriptor) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timespec times[2];
    snprintf(left_path, sizeof left_path, "%s/%s", folder, name);
    assert_true(strlen(left_path) < sizeof to.sun_path);
    memcpy(to.sun_path, left_path, strlen(left_path));
    const int left = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(left, (const struct sockaddr *)&to, sizeof to), 0);
    if (descriptor)
        *descriptor = left;
    else
        close(left);
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= seconds;
    times[1] = times[0];
    assert_int_equal(utimensat(AT_FDCWD, left_path, times, 0), 0);
}

/* Returns true if the file at left_path is still there after another process has listened in the
 * folder. */
static bool outlives_another(void) {
    struct stat status;
    assert_int_equal(listen_socket_open(&first, &address), 0);
    assert_true(is_found(&first));
    listen_socket_close(&first);
    return lstat(left_path, &status) == 0;
}

static void a_socket_that_was_left_aside_is_removed(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++)
        leave(i == 0   ? ".otelprof-1-0"
              : i == 1 ? ".otelprof-4194304-1f2e"
                       : ".otelprof-7-ffffffffffffffff",
              3600, NULL);
    assert_int_equal(files(), 3);
    assert_false(outlives_another());
    assert_int_equal(files(), 0);
}

/* Its process may be between bind(2) and listen(2): no other process can see the difference. */
static void a_socket_that_is_new_is_not_taken_for_left(void **state) {
    (void)state;
    leave(".otelprof-1-0", 5, NULL);
    assert_true(outlives_another());
    assert_int_equal(unlink(left_path), 0);
}

static void a_socket_aside_that_listens_stays(void **state) {
    int descriptor;
    (void)state;
    leave(".otelprof-1-0", 3600, &descriptor);
    assert_int_equal(listen(descriptor, 1), 0);
    assert_true(outlives_another());
    close(descriptor);
    assert_int_equal(unlink(left_path), 0);
}

/* Leaves sockets with other names in the folder. */
static void files_with_other_names_stay(void **state) {
    static const char *const names[] = {".otelprof-1",    ".otelprof--1",   ".otelprof-1-",
                                        ".otelprof-1-0x", ".otelprof-1-0g", ".otelprof-x-1",
                                        "otelprof-1-0",   "old.sock",       ".otelprof-1 1",
                                        ".otelprof-1-1.", ".otelprof-1_1",  "1.sock"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        leave(names[i], 3600, NULL);
        assert_true(outlives_another());
        assert_int_equal(unlink(left_path), 0);
    }
}

static void become_another(void) {
    other_user = true;
}

static void files_that_are_no_sockets_of_this_user_stay(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct timespec old[2] = {{1, 0}, {1, 0}};
        snprintf(left_path, sizeof left_path, "%s/.otelprof-1-0", folder);
        if (i == 0)
            fclose(fopen(left_path, "w"));
        else if (i == 1)
            assert_int_equal(symlink("/nonexistent", left_path), 0);
        else
            leave(".otelprof-1-0", 3600, NULL);
        assert_int_equal(utimensat(AT_FDCWD, left_path, old, AT_SYMLINK_NOFOLLOW), 0);
        after_bind = i == 2 ? become_another : NULL;
        assert_true(outlives_another());
        other_user = false;
        assert_int_equal(unlink(left_path), 0);
    }
}

/* --- a folder of listeners --- */

#define KILLED "4194304.sock" /* no process has such an id */

static void be_one_of_many(void) {
    snprintf(address.path, sizeof address.path, "%s/%d.sock", folder, (int)getpid());
}

static void a_killed_listeners_socket_is_removed_by_the_next(void **state) {
    (void)state;
    be_one_of_many();
    leave(KILLED, 3600, NULL);
    assert_int_equal(chmod(left_path, 0600), 0);
    assert_false(outlives_another());
    assert_int_equal(files(), 0);
}

/* Leaves a socket that differs from a killed listener's in one thing. */
static void what_may_be_something_else_stays(void **state) {
    static const struct {
        const char *name;
        int seconds;
        mode_t mode;
        bool listens;
        bool is_other; /* of another user */
        bool alone;    /* this process does not listen at PID.sock */
    } cases[] = {{KILLED, 5, 0600, false, false, false},
                 {KILLED, 3600, 0666, false, false, false},
                 {KILLED, 3600, 0600, true, false, false},
                 {KILLED, 3600, 0600, false, true, false},
                 {KILLED, 3600, 0600, false, false, true},
                 {"1.sock", 3600, 0600, false, false, false}, /* there is such a process */
                 {".sock", 3600, 0600, false, false, false},
                 {"x" KILLED, 3600, 0600, false, false, false},
                 {KILLED "2", 3600, 0600, false, false, false},
                 {"-" KILLED, 3600, 0600, false, false, false}};
    (void)state;
    const struct listen_address single = address;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int descriptor;
        address = single;
        if (!cases[i].alone)
            be_one_of_many();
        leave(cases[i].name, cases[i].seconds, &descriptor);
        assert_int_equal(chmod(left_path, cases[i].mode), 0);
        if (cases[i].listens)
            assert_int_equal(listen(descriptor, 1), 0);
        else
            close(descriptor);
        after_bind = cases[i].is_other ? become_another : NULL;
        assert_true(outlives_another());
        other_user = false;
        if (cases[i].listens)
            close(descriptor);
        assert_int_equal(unlink(left_path), 0);
    }
}

static int renames;

/* Runs before each rename. The second one renames the stale socket: another process then puts its
 * file in the socket's place. */
static void a_listener_takes_the_name(void) {
    if (renames++ == 0) {
        before_rename = a_listener_takes_the_name;
        return;
    }
    assert_int_equal(unlink(left_path), 0);
    fclose(fopen(left_path, "w"));
}

static void a_listener_that_comes_behind_the_check_keeps_its_name(void **state) {
    (void)state;
    be_one_of_many();
    leave(KILLED, 3600, NULL);
    assert_int_equal(chmod(left_path, 0600), 0);
    renames = 0;
    before_rename = a_listener_takes_the_name;
    assert_true(outlives_another());
    assert_int_equal(renames, 2);
    assert_int_equal(files(), 1);
    assert_int_equal(unlink(left_path), 0);
}

/* Bounds the cost of a folder of any size. */
static void so_many_names_are_searched(void **state) {
    (void)state;
    leave(".otelprof-1-0", 3600, NULL);
    entries_to_come = 5000;
    assert_true(outlives_another());
    assert_int_equal(entries_to_come, 5000 - 4096);
    entries_to_come = 0;
    assert_false(outlives_another());
}

static void slept_for_a_minute(void) {
    DIR *const there = opendir(folder);
    for (const struct dirent *it; (it = readdir(there));)
        if (strncmp(it->d_name, ".otelprof-", 10) == 0)
            assert_int_equal(unlinkat(dirfd(there), it->d_name, 0), 0);
    closedir(there);
}

/* Has another process remove the socket as a dead one: the call fails as if the place were taken,
 * and the caller tries again. */
static void a_process_that_slept_before_it_listened_tries_again(void **state) {
    (void)state;
    after_bind = slept_for_a_minute;
    assert_int_equal(listen_socket_open(&first, &address), -LISTEN_TAKEN);
    before_listen = slept_for_a_minute;
    assert_int_equal(listen_socket_open(&first, &address), -LISTEN_TAKEN);
    assert_int_equal(files(), 0);
    assert_int_equal(listen_socket_open(&first, &address), 0);
}

/* --- two at the same moment --- */

static void a_socket_that_does_not_listen_yet_is_not_taken_for_a_dead_one(void **state) {
    (void)state;
    before_listen = second_comes;
    assert_int_equal(listen_socket_open(&first, &address), -LISTEN_TAKEN);
    assert_second_alone_is_there();
}

/* Both processes have seen that the owner of the socket has ended. */
static void the_later_of_two_heirs_leaves_the_place_to_the_earlier(void **state) {
    (void)state;
    leave_dead_socket();
    after_refusal = second_comes;
    assert_int_equal(listen_socket_open(&first, &address), -LISTEN_TAKEN);
    assert_second_alone_is_there();
}

/* Checks this both with a dead socket in the place and without. */
static void a_process_that_comes_behind_the_last_check_keeps_the_place(void **state) {
    for (int i = 0; i < 2; i++) {
        begin(state);
        if (i)
            leave_dead_socket();
        before_rename = second_comes;
        assert_int_equal(listen_socket_open(&first, &address), -LISTEN_TAKEN);
        assert_second_alone_is_there();
        listen_socket_close(&second);
    }
}

static void file_comes(void) {
    (void)unlink(address.path);
    fclose(fopen(address.path, "w"));
}

static void a_file_that_comes_behind_the_last_check_stays(void **state) {
    struct stat status;
    (void)state;
    leave_dead_socket();
    before_rename = file_comes;
    assert_int_equal(listen_socket_open(&first, &address), -EEXIST);
    assert_int_equal(stat(address.path, &status), 0);
    assert_true(S_ISREG(status.st_mode));
    assert_int_equal(files(), 1);
}

/* The earlier process notices that it has lost its place, and leaves the file that now has the
 * name. */
static void where_names_are_simply_replaced_the_earlier_is_lost(void **state) {
    (void)state;
    knows_no_flags = true;
    leave_dead_socket();
    before_rename = second_comes;
    assert_int_equal(listen_socket_open(&first, &address), 0);
    assert_true(listen_socket_is_lost(&second));
    assert_false(listen_socket_is_lost(&first));
    listen_socket_close(&second);
    assert_true(is_found(&first));
    assert_int_equal(files(), 1);
}

/* Network file systems refuse a socket with one of these errors, and an immutable folder with
 * EPERM. */
static void a_file_system_without_sockets_is_named(void **state) {
    static const int errors[] = {EPERM, EOPNOTSUPP, ENOSYS};
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        refuses_sockets = errors[i];
        const int error = listen_socket_open(&first, &address);
        assert_non_null(strstr(listen_socket_problem(error), "file system has no sockets"));
        assert_non_null(strstr(listen_socket_problem(error), "is immutable"));
        assert_int_equal(first.descriptor, -1);
    }
    assert_int_equal(files(), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_socket_is_its_users_alone),
        TEST(its_descriptor_has_the_path),
        TEST(a_dead_socket_is_replaced),
        TEST(a_file_that_is_no_socket_stays),
        TEST(a_live_socket_stays),
        TEST(a_name_has_a_bound),
        TEST(a_socket_that_was_left_aside_is_removed),
        TEST(a_socket_that_is_new_is_not_taken_for_left),
        TEST(a_socket_aside_that_listens_stays),
        TEST(a_killed_listeners_socket_is_removed_by_the_next),
        TEST(what_may_be_something_else_stays),
        TEST(a_listener_that_comes_behind_the_check_keeps_its_name),
        TEST(files_with_other_names_stay),
        TEST(files_that_are_no_sockets_of_this_user_stay),
        TEST(so_many_names_are_searched),
        TEST(a_process_that_slept_before_it_listened_tries_again),
        TEST(a_socket_that_does_not_listen_yet_is_not_taken_for_a_dead_one),
        TEST(the_later_of_two_heirs_leaves_the_place_to_the_earlier),
        TEST(a_process_that_comes_behind_the_last_check_keeps_the_place),
        TEST(a_file_that_comes_behind_the_last_check_stays),
        TEST(where_names_are_simply_replaced_the_earlier_is_lost),
        TEST(a_file_system_without_sockets_is_named),
    };
#undef TEST
    return cmocka_run_group_tests(tests, make_tests_folder, remove_tests_folder);
}
