/* holds_signals_back HOW COMMAND...: runs the command under ptrace, and delivers SIGPROF
 *   another   at a later stop, in place of another signal, as ltrace does
 *   call      at a later stop of a system call
 *   blocked   at the next call that blocks every real-time signal, where it stays pending
 *   end       when it writes to its output: a program that prints into a pipe does so in exit()
 *   at_once   at its own stop, as strace and gdb do
 * Prints how many signals were delivered so, and how the command ended. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALL_STOP = SIGTRAP | 0x80 };

static enum { ANOTHER, CALL, BLOCKED, END, AT_ONCE, WAYS } way;
static const char *const names[WAYS] = {"another", "call", "blocked", "end", "at_once"};
static pid_t held; /* a thread whose SIGPROF is held back; 0: none */
static bool sent;  /* the signal was sent again, and comes to a stop of its own */
static unsigned delivered;

static bool at_calls(void) {
    return way == CALL || way == BLOCKED || way == END;
}

/* Returns whether a signal set in the kernel's form has every real-time signal in it. */
static bool blocks_all(pid_t id, uint64_t address) {
    uint64_t set = 0;
    const struct iovec here = {&set, sizeof set};
    const struct iovec there = {(void *)(uintptr_t)address, sizeof set};
    return process_vm_readv(id, &here, 1, &there, 1, 0) == sizeof set &&
           set >> 31 == UINT64_MAX >> 31;
}

/* Returns whether the thread has stopped at a call for which a signal is held back. */
static bool is_awaited(pid_t id, int number) {
    struct __ptrace_syscall_info call;
    if (way == ANOTHER)
        return number == SIGWINCH;
    if (number != CALL_STOP || way == CALL)
        return number == CALL_STOP;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, id, sizeof call, &call) <= 0 ||
        call.op != PTRACE_SYSCALL_INFO_ENTRY)
        return false;
    return way == END ? call.entry.nr == SYS_write && call.entry.args[0] == STDOUT_FILENO
                      : call.entry.nr == SYS_rt_sigprocmask && call.entry.args[0] != SIG_UNBLOCK &&
                            blocks_all(id, call.entry.args[1]);
}

/* Returns the signal that the stopped thread gets when it goes on. */
static int signal_for(pid_t id, int status) {
    const int number = WSTOPSIG(status);
    if (status >> 16) /* an event: a new thread, or exec */
        return 0;
    if (number == SIGPROF && way != AT_ONCE && !sent && held == 0) {
        held = id;
        if (way == ANOTHER)
            syscall(SYS_tgkill, id, id, SIGWINCH);
        return 0;
    }
    if (held == id && is_awaited(id, number)) {
        held = 0;
        sent = way != ANOTHER;
        delivered++;
        return SIGPROF;
    }
    if (number == SIGPROF) {
        sent = false;
        delivered += way == AT_ONCE;
    }
    return number == CALL_STOP || number == SIGSTOP || number == SIGTRAP ? 0 : number;
}

static void trace(pid_t child) {
    int status = 0;
    for (;;) {
        const pid_t id = waitpid(-1, &status, __WALL);
        if (id == child && !WIFSTOPPED(status))
            break;
        if (WIFSTOPPED(status))
            ptrace(at_calls() ? PTRACE_SYSCALL : PTRACE_CONT, id, 0, signal_for(id, status));
    }
    printf("%u delivered\n%s %d\n", delivered, WIFEXITED(status) ? "exited" : "killed",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int main(int argc, char **argv) {
    while (argc > 2 && way < WAYS && strcmp(argv[1], names[way]) != 0)
        way++;
    if (argc < 3 || way == WAYS)
        return 2;
    const pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    waitpid(child, NULL, WUNTRACED);
    ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE);
    kill(child, SIGCONT);
    trace(child);
    return 0;
}
