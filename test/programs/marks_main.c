/* main's first call to the kernel says where it begins; then a preload that has counted calls until
 * here (test_before_main.py makes one) is asked to say them. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

enum { MAIN_BEGINS = 2222222 };

__attribute__((weak)) void say_calls(void);

int main(void) {
    syscall(SYS_getpgid, MAIN_BEGINS);
    if (say_calls)
        say_calls();
    return 0;
}
