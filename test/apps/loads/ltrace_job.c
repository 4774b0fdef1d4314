// Calls libc without a pause, so that SIGPROF often finds it at a breakpoint of its tracer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t call_libc(void)
{
    size_t sum = 0;
    for (int i = 0; i < 4000; i++) {
        char *text = malloc(100);
        if (text == NULL)
            return 0;
        memset(text, 'x', 99);
        text[99] = 0;
        sum += strlen(text);
        free(text);
    }
    return sum;
}

int main(void)
{
    size_t sum = call_libc();
    FILE *gate = fopen("gate", "r");
    char line[100] = "";
    if (gate == NULL || fgets(line, sizeof line, gate) == NULL)
        return 1;
    printf("%zu\n", sum);
    return 9;
}
