/* Is a library as a bad release might be: each process that loads it ends. */
#include <stdlib.h>

__attribute__((constructor)) static void end(void) {
    abort();
}
