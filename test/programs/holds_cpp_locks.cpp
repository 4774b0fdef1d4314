/* flags: -std=c++20
 *
 * Uses locks of C++: a thread holds each until it sees another wait for it, in a function of that
 * lock's name. Prints a line for each: name, address, how often the other waited. A semaphore and
 * an atomic variable are waited for, too; these are no locks. */
#include "thread_sleeps.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <sys/syscall.h>
#include <thread>

static constexpr int turns = 3;
static std::atomic<pid_t> waiter;
static std::atomic<int> stage;

/* The holder's part is `take`, a wait for the waiter, and `drop`. The waiter's part is `wait`, then
 * `after`. */
template <class Take, class Drop, class Wait, class After>
static void contend(const char *name, const void *lock, Take take, Drop drop, Wait wait,
                    After after) {
    for (int turn = 0; turn < turns; turn++) {
        stage = 0;
        std::thread thread([&] {
            waiter = static_cast<pid_t>(syscall(SYS_gettid));
            while (stage == 0)
                usleep(100);
            stage = 2;
            wait();
            after();
        });
        take();
        stage = 1;
        while (stage != 2)
            usleep(100);
        wait_until_it_sleeps(waiter);
        usleep(10000);
        drop();
        thread.join();
    }
    std::printf("%s 0x%lx %d\n", name, reinterpret_cast<unsigned long>(lock), turns);
}

static std::mutex plain;
static std::recursive_mutex recursive;
static std::timed_mutex timed;
static std::shared_mutex shared;
static std::shared_timed_mutex shared_timed;
static std::binary_semaphore semaphore{0};
static std::atomic<int> number;

#define WAITS_FOR(name, how)                                                                       \
    __attribute__((noinline)) static void waits_for_##name() {                                     \
        how;                                                                                       \
        __asm__ volatile("" : : : "memory");                                                       \
    }
WAITS_FOR(plain, plain.lock())
WAITS_FOR(recursive, recursive.lock())
WAITS_FOR(timed, (void)timed.try_lock_for(std::chrono::minutes(10)))
WAITS_FOR(shared_writer, shared.lock())
WAITS_FOR(shared_reader, shared.lock_shared())
WAITS_FOR(shared_timed, (void)shared_timed.try_lock_shared_for(std::chrono::minutes(10)))
WAITS_FOR(semaphore, semaphore.acquire())
WAITS_FOR(number, number.wait(0))

template <class Lock> static void contend_for(const char *name, Lock &lock, void (*wait)()) {
    contend(
        name, &lock, [&] { lock.lock(); }, [&] { lock.unlock(); }, wait, [&] { lock.unlock(); });
}
template <class Lock> static void contend_to_read(const char *name, Lock &lock, void (*wait)()) {
    contend(
        name, &lock, [&] { lock.lock(); }, [&] { lock.unlock(); }, wait,
        [&] { lock.unlock_shared(); });
}

int main() {
    contend_for("plain", plain, waits_for_plain);
    contend_for("recursive", recursive, waits_for_recursive);
    contend_for("timed", timed, waits_for_timed);
    contend_for("shared_writer", shared, waits_for_shared_writer);
    contend_to_read("shared_reader", shared, waits_for_shared_reader);
    contend_to_read("shared_timed", shared_timed, waits_for_shared_timed);
    auto nothing = [] {};
    contend(
        "semaphore", nullptr, nothing, [] { semaphore.release(); }, waits_for_semaphore, nothing);
    contend(
        "number", nullptr, [] { number = 0; },
        [] {
            number = 1;
            number.notify_all();
        },
        waits_for_number, nothing);
}
