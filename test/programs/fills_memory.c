/* Takes MIB MiB, or as much as there is, and holds them until the file GO exists. Then it gives
 * half of them back, and takes more until the kernel ends it, or refuses more.
 *     fills_memory MIB GO */
#include "noipa.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20, MOST = 1 << 14 };

static void *volatile held[MOST];
static int count;

NOIPA static void fill(int pieces) {
    for (int i = 0; i < pieces && count < MOST; i++) {
        void *const piece = malloc(PIECE);
        if (!piece)
            return;
        memset(piece, 1, PIECE);
        held[count++] = piece;
    }
}

static void give_back(int pieces) {
    while (pieces-- > 0)
        free(held[--count]);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    fill((int)strtol(argv[1], NULL, 10));
    while (access(argv[2], F_OK) != 0)
        usleep(10000);
    give_back(count / 2);
    fill(INT_MAX);
    abort();
}
