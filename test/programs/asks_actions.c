/* Checks what a program sees of the actions of signals that end it: the default ones, by whatever
 * call it queries them, and its own as soon as it sets them. Prints a line for each wrong result,
 * then "asked". */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t seen;

static void on_number(int number) {
    seen = number;
}

static void expect(int holds, const char *what, int number) {
    if (!holds)
        printf("%s of %d\n", what, number);
}

static void ask(int number) {
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    struct sigaction old;
    memset(&old, 0xff, sizeof old);
    sigaction(number, NULL, &old);
    expect(old.sa_handler == SIG_DFL && old.sa_flags == 0, "sigaction without a new one", number);
    sigaction(number, &by_default, &old);
    expect(old.sa_handler == SIG_DFL, "sigaction to the default", number);
    expect(signal(number, SIG_DFL) == SIG_DFL, "signal to the default", number);
    expect(signal(number, on_number) == SIG_DFL, "signal", number);
    raise(number);
    expect(seen == number, "the handler's call", number);
    expect(signal(number, SIG_IGN) == on_number, "signal to be ignored", number);
    raise(number);
    expect(signal(number, SIG_DFL) == SIG_IGN, "signal back to the default", number);
    sigaction(number, NULL, &old);
    expect(old.sa_handler == SIG_DFL, "sigaction after all that", number);
}

int main(void) {
    ask(SIGTERM);
    ask(SIGINT);
    ask(SIGHUP);
    puts("asked");
    fflush(stdout);
    raise(SIGTERM);
    return 0;
}
