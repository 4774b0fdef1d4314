/* Keeps one large object, and nothing else, until the file "FOLDER/free" exists. Then it frees the
 * object, makes "FOLDER/freed", and ends when "FOLDER/end" exists. It calls nothing that allocates:
 * so its heap is empty. */
#include "noipa.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES = 64 << 20, POLL_US = 10000 };

static void wait_for(int folder, const char *name) {
    while (faccessat(folder, name, F_OK, 0) != 0)
        usleep(POLL_US);
}

NOIPA static void *keep_large(void) {
    return malloc(BYTES);
}

int main(int argc, char **argv) {
    const int folder = open(argc > 1 ? argv[1] : ".", O_RDONLY | O_DIRECTORY);
    void *const object = keep_large();
    if (!object || folder < 0)
        return 1;
    wait_for(folder, "free");
    free(object);
    if (openat(folder, "freed", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0)
        return 1;
    wait_for(folder, "end");
    return 0;
}
