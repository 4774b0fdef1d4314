// Is a setuid program that runs another as root, as pkexec and sudo do: with the caller's
// environment.
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 2 || setgid(0) != 0 || setuid(0) != 0)
        return 2;
    printf("setuid_wrapper: %d\n", (int)geteuid());
    fflush(stdout);
    execv(argv[1], argv + 1);
    return 3;
}
