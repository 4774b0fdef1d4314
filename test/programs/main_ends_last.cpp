// Ends by pthread_exit in main, its only thread. Destructors and handlers at the end of the process
// run on the main thread, under its signal mask, as the lines show.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>

namespace {

struct Object {
    const char *name;
    ~Object() {
        std::printf("%s destroyed by the main thread: %d\n", name, gettid() == getpid());
    }
};

thread_local Object of_the_thread{"thread-local object"};

void at_end() {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    std::printf("exit handler on the main thread: %d, SIGUSR1 blocked: %d\n", gettid() == getpid(),
                sigismember(&mask, SIGUSR1));
}

} // namespace

int main() {
    std::atexit(at_end);
    if (!of_the_thread.name)
        return 1;
    pthread_exit(nullptr);
}
