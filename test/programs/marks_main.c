/* Marks where main begins by its first call to the kernel; then has a preload that has counted
 * calls until here (test_before_main.py makes one) print them. */
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
