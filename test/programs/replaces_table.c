/* Puts the standard input of process PID under the number of each open descriptor of the process's
 * thread TID, which has a table of its own: a restore by CRIU replaces such a table likewise. Then
 * it follows the thread's calls until one names such a number (fstat may), or is ppoll: prints
 * "CALL of DESCRIPTOR", and fails; or until the thread makes another table: prints "separate".
 *
 * usage: replaces_table PID TID */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1024, INTERRUPTED = -4, CALL_BYTES = 2, UNSHARE = 2, LIMIT_S = 120 };

static bool replaced[MOST];
static pid_t thread;

static void require(bool holds, const char *what) {
    if (!holds) {
        perror(what);
        exit(2);
    }
}

static void await_stop(void) {
    int status;
    require(waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status), "waitpid");
}

static void get(struct user_regs_struct *registers) {
    require(ptrace(PTRACE_GETREGS, thread, NULL, registers) == 0, "PTRACE_GETREGS");
}

static void set(const struct user_regs_struct *registers) {
    require(ptrace(PTRACE_SETREGS, thread, NULL, registers) == 0, "PTRACE_SETREGS");
}

/* Stops the thread right behind the instruction of a system call, which call_in() runs again. While
 * the thread computes it is continued and stopped once more. */
static void stop_in_call(void) {
    struct user_regs_struct registers;
    require(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) == 0, "PTRACE_INTERRUPT");
    await_stop();
    for (get(&registers); (long)registers.orig_rax < 0; get(&registers)) {
        require(ptrace(PTRACE_CONT, thread, NULL, NULL) == 0, "PTRACE_CONT");
        require(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) == 0, "PTRACE_INTERRUPT");
        await_stop();
    }
}

/* Makes a call in the thread, which must be behind the instruction of a system call. */
static long call_in(const struct user_regs_struct *at, long number, long first, long second) {
    struct user_regs_struct registers = *at;
    registers.rip -= CALL_BYTES;
    registers.orig_rax = -1ULL;
    registers.rax = (unsigned long)number;
    registers.rdi = (unsigned long)first;
    registers.rsi = (unsigned long)second;
    registers.rdx = 0;
    set(&registers);
    require(ptrace(PTRACE_SINGLESTEP, thread, NULL, NULL) == 0, "PTRACE_SINGLESTEP");
    await_stop();
    get(&registers);
    return (long)registers.rax;
}

static void list_descriptors(const char *pid) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%s/task/%d/fd", pid, thread);
    DIR *const folder = opendir(path);
    require(folder != NULL, path);
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) < MOST)
            replaced[atoi(entry->d_name)] = true;
    closedir(folder);
}

static void replace_all(pid_t process) {
    struct user_regs_struct registers;
    get(&registers);
    const long handle = call_in(&registers, SYS_pidfd_open, process, 0);
    const long theirs = call_in(&registers, SYS_pidfd_getfd, handle, STDIN_FILENO);
    require(theirs >= 0, "pidfd_getfd");
    for (int number = 0; number < MOST; number++)
        if (replaced[number])
            require(call_in(&registers, SYS_dup2, theirs, number) == number, "dup2");
    require(call_in(&registers, SYS_close, theirs, 0) == 0, "close");
    require(call_in(&registers, SYS_close, handle, 0) == 0, "close");
    registers.orig_rax = -1ULL;
    registers.rax = (unsigned long)INTERRUPTED;
    set(&registers);
}

static bool names_descriptor(long number) {
    switch (number) {
    case SYS_read:
    case SYS_write:
    case SYS_close:
    case SYS_lseek:
    case SYS_pread64:
    case SYS_writev:
    case SYS_sendto:
    case SYS_recvfrom:
    case SYS_fcntl:
    case SYS_getsockopt:
    case SYS_accept4:
    case SYS_getdents64:
        return true;
    default:
        return false;
    }
}

/* Continues the thread to the next entry or end of a call. Returns false when the thread makes
 * another table. */
static bool follow_call(bool *enters) {
    struct user_regs_struct registers;
    require(ptrace(PTRACE_SYSCALL, thread, NULL, NULL) == 0, "PTRACE_SYSCALL");
    await_stop();
    *enters = !*enters;
    if (!*enters)
        return true;
    get(&registers);
    const long number = (long)registers.orig_rax;
    if (number == SYS_close_range && registers.rdx == UNSHARE)
        return false;
    if ((names_descriptor(number) && registers.rdi < MOST && replaced[registers.rdi]) ||
        number == SYS_ppoll) {
        printf("%ld of %d\n", number, (int)registers.rdi);
        exit(1);
    }
    return true;
}

int main(int argc, char **argv) {
    bool enters = false;
    alarm(LIMIT_S);
    require(argc == 3, "replaces_table PID TID");
    thread = (pid_t)atoi(argv[2]);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    require(ptrace(PTRACE_SEIZE, thread, NULL, PTRACE_O_TRACESYSGOOD) == 0, "PTRACE_SEIZE");
    stop_in_call();
    list_descriptors(argv[1]);
    replace_all((pid_t)atoi(argv[1]));
    while (follow_call(&enters))
        ;
    puts("separate");
    return 0;
}
