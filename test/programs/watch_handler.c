/* Watches what runs between entering and leaving a signal handler, instruction by instruction, from
 * outside: every function, system call and locked instruction.
 *
 * usage: watch_handler SIGNAL COUNT LIBRARY PROGRAM [ARGUMENTS...]
 * Runs PROGRAM with LIBRARY preloaded, and steps through the first COUNT handlers of SIGNAL in any
 * of its threads; then the program runs on to its end. Prints, with the number of times each:
 * - call FILE FUNCTION: an instruction of that function was executed
 * - syscall NUMBER
 * - lock FILE FUNCTION: an instruction with a lock prefix, or an exchange with memory
 * - handlers, instructions
 *
 * The status is the program's.
 */
/* flags: -ldw -lelf */
#define _GNU_SOURCE
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_THREADS = 4096,
    MAX_ROWS = 512,
    PLACES = 1 << 16,
    MAX_SYSCALLS = 512,
    MAX_READINGS = 200, /* of the list of files: some code has no name at all */
};

static struct {
    int signal;
    long wanted;
    pid_t process;
    long handlers;
    long instructions;
    long system_calls[MAX_SYSCALLS];
    bool stepping[MAX_THREADS]; /* by thread id, modulo */
} watch;

static struct row {
    char file[64];
    char function[128];
    long calls;
    long locks;
} rows[MAX_ROWS];
static int row_count;

static struct {
    uint64_t pc;
    struct row *row;
} places[PLACES];

/* --- naming --- */

static Dwfl *open_names(void) {
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo};
    Dwfl *const names = dwfl_begin(&callbacks);
    dwfl_linux_proc_report(names, watch.process);
    dwfl_report_end(names, NULL, NULL);
    return names;
}

/* Where pc is nameless, the list of files may be of before a dlopen, or was read while one was
 * under way, when the kernel tells a library's segments in part. */
static const char *function_at(uint64_t pc, const char **file) {
    static Dwfl *names;
    static int readings = MAX_READINGS;
    for (;;) {
        if (!names)
            names = open_names();
        Dwfl_Module *const module = dwfl_addrmodule(names, pc);
        const char *const function = module ? dwfl_module_addrname(module, pc) : NULL;
        *file =
            module ? dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL) : "[none]";
        if (function || --readings < 0)
            return function ? function : "?";
        dwfl_end(names);
        names = NULL;
    }
}

static struct row *row_of(const char *file, const char *function) {
    for (int i = 0; i < row_count; i++)
        if (strcmp(rows[i].file, file) == 0 && strcmp(rows[i].function, function) == 0)
            return &rows[i];
    struct row *const row = &rows[row_count < MAX_ROWS - 1 ? row_count++ : MAX_ROWS - 1];
    snprintf(row->file, sizeof row->file, "%s", file);
    snprintf(row->function, sizeof row->function, "%s", function);
    return row;
}

static struct row *name(uint64_t pc) {
    const uint64_t place = pc * UINT64_C(0x9e3779b97f4a7c15) >> 48;
    if (places[place].pc == pc)
        return places[place].row;
    const char *path;
    const char *const function = function_at(pc, &path);
    const char *const slash = strrchr(path, '/');
    struct row *const row = row_of(slash ? slash + 1 : path, function);
    places[place].pc = pc;
    places[place].row = row;
    return row;
}

/* --- one instruction --- */

/* Past prefixes that do not matter here: the operand's size, the segment, REX. */
static const uint8_t *opcode_of(const uint8_t *code, bool *lock) {
    for (int i = 0; i < 8; i++, code++) {
        if (*code == 0xf0)
            *lock = true;
        else if (*code != 0x66 && *code != 0x64 && *code != 0xf2 && *code != 0xf3 &&
                 (*code & 0xf0) != 0x40)
            return code;
    }
    return code;
}

/* true: this instruction leaves the handler. */
static bool look_at(pid_t thread) {
    struct user_regs_struct registers;
    uint8_t code[2 * sizeof(long)] = {0};
    ptrace(PTRACE_GETREGS, thread, NULL, &registers);
    for (size_t i = 0; i < sizeof code; i += sizeof(long)) {
        const long word = ptrace(PTRACE_PEEKTEXT, thread, (void *)(registers.rip + i), NULL);
        memcpy(code + i, &word, sizeof word);
    }
    struct row *const row = name(registers.rip);
    bool lock = false;
    const uint8_t *const opcode = opcode_of(code, &lock);
    watch.instructions++;
    row->calls++;
    if ((opcode[0] & 0xfe) == 0x86 && opcode[1] < 0xc0) /* xchg with memory locks by itself */
        lock = true;
    row->locks += lock;
    if (opcode[0] != 0x0f || opcode[1] != 0x05)
        return false;
    if (registers.rax < MAX_SYSCALLS)
        watch.system_calls[registers.rax]++;
    return registers.rax == SYS_rt_sigreturn;
}

/* --- all threads --- */

static void go_on(pid_t thread, int signal) {
    const bool step = watch.stepping[thread % MAX_THREADS];
    ptrace(step ? PTRACE_SINGLESTEP : PTRACE_CONT, thread, NULL, (void *)(intptr_t)signal);
}

static void on_stop(pid_t thread, int status) {
    bool *const stepping = &watch.stepping[thread % MAX_THREADS];
    const int signal = WSTOPSIG(status);
    if (status >> 16) { /* a clone or an exec */
        go_on(thread, 0);
        return;
    }
    if (signal == SIGTRAP && *stepping) {
        *stepping = !look_at(thread);
        watch.handlers += !*stepping;
        go_on(thread, 0);
        return;
    }
    if (signal == watch.signal && watch.handlers < watch.wanted && !*stepping)
        *stepping = true;
    go_on(thread, signal == SIGSTOP ? 0 : signal);
}

static int run_to_the_end(void) {
    for (;;) {
        int status;
        const pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0 && errno == ECHILD)
            return 1;
        if (WIFSTOPPED(status)) {
            on_stop(thread, status);
            continue;
        }
        watch.stepping[thread % MAX_THREADS] = false;
        if (thread == watch.process)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

static void print_all(void) {
    for (int i = 0; i < row_count; i++)
        printf("call %s %s %ld\n", rows[i].file, rows[i].function, rows[i].calls);
    for (int i = 0; i < row_count; i++)
        if (rows[i].locks)
            printf("lock %s %s %ld\n", rows[i].file, rows[i].function, rows[i].locks);
    for (int i = 0; i < MAX_SYSCALLS; i++)
        if (watch.system_calls[i])
            printf("syscall %d %ld\n", i, watch.system_calls[i]);
    printf("handlers %ld\ninstructions %ld\n", watch.handlers, watch.instructions);
}

int main(int argc, char **argv) {
    int status;
    if (argc < 5)
        return 2;
    watch.signal = atoi(argv[1]);
    watch.wanted = atol(argv[2]);
    watch.process = fork();
    if (watch.process == 0) {
        setenv("LD_PRELOAD", argv[3], 1);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execvp(argv[4], argv + 4);
        _exit(127);
    }
    waitpid(watch.process, &status, 0);
    ptrace(PTRACE_SETOPTIONS, watch.process, NULL,
           (void *)(PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL));
    ptrace(PTRACE_CONT, watch.process, NULL, NULL);
    const int result = run_to_the_end();
    print_all();
    return result;
}
