/* Is a worker that gives up all system calls but read, write, exit and sigreturn. Reading a CPU
 * clock, a timer, a log line: each would kill it. */
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t burn(uint64_t rounds) {
    volatile uint64_t sum = 0;
    for (uint64_t i = 0; i < rounds; i++)
        sum += i * i;
    return sum;
}

int main(void) {
    for (int turn = 0; turn < 3; turn++) {
        const pid_t worker = fork();
        if (worker == 0) {
            burn(turn * 100000000ull); /* the first turn begins before a sample was taken */
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
            burn(300000000);
            free(malloc(100));
            const char done[] = "done\n";
            const long written = write(1, done, sizeof done - 1);
            syscall(SYS_exit, written != sizeof done - 1);
        }
        int status = 0;
        waitpid(worker, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            return 10 + turn;
    }
    return 0;
}
