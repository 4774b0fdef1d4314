/* Closes a descriptor and opens a file, again and again until the file STOP exists. The file must
 * get the same number, as shells and daemons rely on. Prints how often it got another one.
 *
 * usage: lowest_number STOP
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    long wrong = 0;
    while (argc > 1 && access(argv[1], F_OK) != 0) {
        for (int i = 0; i < 1000; i++) {
            close(STDIN_FILENO);
            const int got = open("/dev/null", O_RDONLY);
            wrong += got != STDIN_FILENO;
            if (got != STDIN_FILENO) {
                dup2(got, STDIN_FILENO);
                close(got);
            }
        }
    }
    printf("%ld\n", wrong);
    return 0;
}
