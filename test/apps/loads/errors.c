/* Makes the errors that memcheck and electric-fence find, and opens a gate. With an argument: no
 * errors. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char byte = 0;
    int *volatile numbers = malloc(10 * sizeof *numbers);
    (void)argv;
    for (int i = 0; i < 10; i++)
        numbers[i] = i;
    for (int i = 1; i < 400; i++)
        numbers = realloc(numbers, (size_t)(10 + i) * sizeof *numbers);
    for (volatile long i = 0; i < 200000000 && argc > 1; i++)
        continue;
    const int gate = open("gate", O_RDONLY);
    if (gate < 0 || read(gate, &byte, 1) != 1)
        perror("gate");
    close(gate);
    printf("%d\n", numbers[9]);
    if (argc == 1) {
        printf("%d\n", numbers[409] == 12345); /* behind the end */
        free(numbers);
        printf("%d\n", numbers[3] == 12345);   /* freed */
        numbers = malloc(77);                  /* lost */
        return 2;
    }
    free(numbers);
    return 1;
}
