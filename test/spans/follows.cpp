/* Checks whether the record that is published for a thread has at each step the active span. Prints
 * "ok", or the step that failed. */
#include "published.h"

#include <pthread.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static void expect_at(int line, uint64_t number) {
    if (published() == number)
        return;
    std::printf("line %d: %llu is published, not %llu\n", line, (unsigned long long)published(),
                (unsigned long long)number);
    std::fflush(stdout);
    _exit(1);
}
#define expect(number) expect_at(__LINE__, number)

static void nests(int depth, uint64_t number) {
    api::trace::Scope scope(make_span(number));
    expect(number);
    if (depth > 1)
        nests(depth - 1, number + 1);
    expect(number);
}

static void is_left_by_an_exception() {
    api::trace::Scope outer(make_span(1));
    try {
        api::trace::Scope inner(make_span(2));
        expect(2);
        throw 3;
    } catch (int) {
        expect(1);
    }
}

static void is_left_out_of_order() {
    auto first = std::make_unique<api::trace::Scope>(make_span(1));
    auto second = std::make_unique<api::trace::Scope>(make_span(2));
    auto third = std::make_unique<api::trace::Scope>(make_span(3));
    expect(3);
    second.reset(); /* and what was attached after it, as in the API */
    expect(1);
    third.reset();
    expect(1);
    first.reset();
    expect(0);
}

static void attaches_one_context_twice() {
    const SpanPointer span = make_span(1);
    api::context::Context none;
    auto context = api::trace::SetSpan(none, span);
    auto first = api::context::RuntimeContext::Attach(context);
    auto between = std::make_unique<api::trace::Scope>(make_span(2));
    auto second = api::context::RuntimeContext::Attach(context);
    expect(1);
    first.reset(); /* the API takes the last that is equal */
    expect(2);
    between.reset();
    expect(1);
    second.reset();
    expect(0);
}

static void has_no_span() {
    api::trace::Scope outer(make_span(1));
    {
        api::context::Context empty;
        auto token = api::context::RuntimeContext::Attach(empty);
        expect(0);
    }
    expect(1);
    {
        auto context = api::context::RuntimeContext::GetCurrent().SetValue("key", true);
        auto token = api::context::RuntimeContext::Attach(context);
        expect(1);
    }
    {
        api::trace::Scope invalid(SpanPointer(new TestSpan(0)));
        expect(0);
    }
    expect(1);
}

static void ends_on_another_thread() {
    std::unique_ptr<api::trace::Scope> scope;
    std::thread other([&scope] {
        scope = std::make_unique<api::trace::Scope>(make_span(7));
        expect(7);
    });
    other.join();
    expect(0);
    api::trace::Scope mine(make_span(8));
    scope.reset();
    expect(8);
}

static void *ends_with_a_span(void *) {
    static thread_local api::trace::Scope *kept;
    kept = new api::trace::Scope(make_span(5));
    expect(5);
    pthread_exit(nullptr);
}

static void threads_end() {
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, ends_with_a_span, nullptr) == 0)
            pthread_join(thread, nullptr);
    }
    expect(0);
}

static void each_thread_has_its_own() {
    std::vector<std::thread> threads;
    for (int i = 1; i <= 8; i++)
        threads.emplace_back([i] {
            for (int j = 0; j < 1000; j++) {
                api::trace::Scope outer(make_span(i * 10000 + j));
                expect(i * 10000 + j);
                {
                    api::trace::Scope inner(make_span(i * 20000 + j));
                    expect(i * 20000 + j);
                }
                expect(i * 10000 + j);
            }
        });
    for (auto &thread : threads)
        thread.join();
}

static void a_child_goes_on() {
    api::trace::Scope scope(make_span(1));
    const pid_t child = fork();
    if (child == 0) {
        expect(1);
        {
            api::trace::Scope inner(make_span(2));
            expect(2);
        }
        expect(1);
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0)
        expect_at(__LINE__, ~0ull);
    expect(1);
}

int main() {
    /* attached before the profiler follows: found when what was attached after it ends */
    auto early = std::make_unique<api::trace::Scope>(make_span(77));
    if (!is_followed()) {
        std::puts("not followed");
        return 0;
    }
    expect(77);
    early.reset();
    expect(0);
    nests(1, 1);
    nests(3, 1);
    nests(100, 1);
    expect(0);
    is_left_by_an_exception();
    expect(0);
    is_left_out_of_order();
    attaches_one_context_twice();
    has_no_span();
    expect(0);
    ends_on_another_thread();
    threads_end();
    each_thread_has_its_own();
    a_child_goes_on();
    expect(0);
    std::puts("ok");
    return 0;
}
