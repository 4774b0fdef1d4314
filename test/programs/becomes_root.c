/* Acts as a setuid wrapper: becomes root by all of its ids, and starts a program with the
 * environment that it was given, except for the variables that the loader has removed.
 *
 * usage: becomes_root COMMAND [ARGUMENT]...
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0) {
        perror("becomes_root");
        return 3;
    }
    execv(argv[1], argv + 1);
    perror(argv[1]);
    return 3;
}
