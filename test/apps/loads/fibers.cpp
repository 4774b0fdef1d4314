// Runs Boost's fibers, which take turns, and one of its coroutines, which makes numbers.
#include <boost/coroutine2/all.hpp>
#include <boost/fiber/all.hpp>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

using coroutine = boost::coroutines2::coroutine<std::uint32_t>;

static std::uint32_t burn(std::uint32_t x) {
    for (int i = 0; i < 20000; i++)
        x = x * 1664525u + 1013904223u;
    return x;
}

static std::uint32_t grow(std::uint32_t x) {
    std::vector<std::string> texts;
    for (int i = 0; i < 20; i++)
        texts.emplace_back(100 + x % 50, 'x');
    return x + static_cast<std::uint32_t>(texts.back().size());
}

static std::uint32_t take_turns() {
    std::vector<boost::fibers::fiber> fibers;
    std::vector<std::uint32_t> sums(8);
    for (std::uint32_t &sum : sums)
        fibers.emplace_back([&sum] {
            for (int i = 0; i < 8000; i++) {
                sum = grow(burn(sum));
                boost::this_fiber::yield();
            }
        });
    std::uint32_t all = 0;
    for (auto &fiber : fibers)
        fiber.join();
    for (const std::uint32_t sum : sums)
        all = all * 31 + sum;
    return all;
}

static std::uint32_t make_numbers() {
    coroutine::pull_type source([](coroutine::push_type &out) {
        for (std::uint32_t i = 0; i < 20000; i++)
            out(burn(i));
    });
    std::uint32_t all = 0;
    for (const std::uint32_t number : source)
        all = all * 31 + number;
    return all;
}

int main() {
    std::string line;
    const std::uint32_t turns = take_turns();
    std::ifstream gate("gate");
    std::getline(gate, line);
    std::cout << turns << ' ' << make_numbers() << std::endl;
    return 5;
}
