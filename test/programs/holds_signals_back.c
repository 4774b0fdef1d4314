/* holds_signals_back HOW COMMAND...: runs the command under ptrace, and delivers SIGPROF
 *   another   at a later stop, in place of another signal, as ltrace does
 *   call      at a later stop of a system call
 *   at_once   at its own stop, as strace and gdb do
 * Prints how many signals were delivered, and how the command ended. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALL_STOP = SIGTRAP | 0x80 };

static bool at_calls, at_once;
static pid_t held; /* a thread whose SIGPROF is held back; 0: none */
static bool sent;  /* it was sent again, and comes to a stop of its own */
static unsigned delivered;

/* What the thread that has stopped is to be given when it goes on. */
static int signal_for(pid_t id, int status) {
    const int number = WSTOPSIG(status);
    if (status >> 16) /* an event: a thread, or exec */
        return 0;
    if (number == SIGPROF && !at_once && !sent && held == 0) {
        held = id;
        if (!at_calls)
            syscall(SYS_tgkill, id, id, SIGWINCH);
        return 0;
    }
    if (held == id && number == (at_calls ? CALL_STOP : SIGWINCH)) {
        held = 0;
        sent = at_calls;
        delivered += !at_calls;
        return SIGPROF;
    }
    if (number == SIGPROF) {
        sent = false;
        delivered++;
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
            ptrace(at_calls ? PTRACE_SYSCALL : PTRACE_CONT, id, 0, signal_for(id, status));
    }
    printf("%u delivered\n%s %d\n", delivered, WIFEXITED(status) ? "exited" : "killed",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    at_calls = strcmp(argv[1], "call") == 0;
    at_once = strcmp(argv[1], "at_once") == 0;
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
