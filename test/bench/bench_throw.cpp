// Measures nanoseconds per throw and catch through eight frames with destructors; prints the best
// of several turns.
#include <cstdio>
#include <ctime>
#include <stdexcept>

static double cpu_now() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

static volatile int destroyed;

struct guard {
    ~guard() {
        destroyed = destroyed + 1;
    }
};

__attribute__((noinline)) static void descend(int depth) {
    guard here;
    if (depth == 0)
        throw std::runtime_error("bottom");
    descend(depth - 1);
    __asm__ volatile("" : : : "memory");
}

int main() {
    const int turns = 7;
    const int throws = 40000;
    double best = 1e18;
    for (int turn = 0; turn < turns; turn++) {
        const double start = cpu_now();
        for (int i = 0; i < throws; i++) {
            try {
                descend(8);
            } catch (const std::exception &) {
            }
        }
        const double time = (cpu_now() - start) / throws;
        if (time < best)
            best = time;
    }
    std::printf("%.2f\n", best);
    return 0;
}
