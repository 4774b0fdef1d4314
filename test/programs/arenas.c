/* Burns so many milliseconds of CPU, while it allocates, and prints how many arenas its allocator
 * has at the end: one, for its one thread.
 *
 * usage: arenas MILLISECONDS
 */
#include "cpu_work.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    char *text = NULL;
    size_t size = 0;
    const long milliseconds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    for (long i = 0; i < milliseconds; i++) {
        void *volatile gone = malloc(1 << 16);
        WORK_FOR(NS_PER_MS);
        free(gone);
    }
    FILE *const stream = open_memstream(&text, &size);
    if (!stream || malloc_info(0, stream) != 0 || fclose(stream) != 0)
        return 1;
    int arenas = 0;
    for (const char *at = text; (at = strstr(at, "<heap nr=")); at++)
        arenas++;
    printf("%d\n", arenas);
    free(text);
    return 0;
}
