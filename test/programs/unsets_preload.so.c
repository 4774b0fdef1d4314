/* Is a preload that takes LD_PRELOAD out of the environment when it is initialised, so that no
 * child inherits it. */
#include <stdlib.h>

__attribute__((constructor)) static void unset_preload(void) {
    (void)unsetenv("LD_PRELOAD");
}
