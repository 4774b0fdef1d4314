/* Is preloaded behind the profiler: every malloc of its helper thread takes long, so that the
 * helper's work (the initialisation of its libraries, above all) is surely still in progress when
 * main ends.
 */
#include "../../common/helper_name.h"

#include <sys/prctl.h>
#include <time.h>

extern void *__libc_malloc(size_t size);
void *malloc(size_t size);

void *malloc(size_t size) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (helper_name_is(name))
        nanosleep(&(struct timespec){0, 20000}, NULL);
    return __libc_malloc(size);
}
