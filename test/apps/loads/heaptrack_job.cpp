// Runs threads that allocate from the first instruction of main on, and keep one block in ten.
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

__attribute__((noinline)) static void work(std::vector<std::string> *kept)
{
    for (int i = 0; i < 3000; i++) {
        std::string text(100 + i % 50, 'x');
        if (i % 10 == 0)
            kept->push_back(text);
    }
}

int main()
{
    std::vector<std::string> kept[4];
    std::vector<std::thread> threads;
    for (auto &list : kept)
        threads.emplace_back(work, &list);
    for (auto &thread : threads)
        thread.join();
    size_t sum = 0;
    for (auto &list : kept)
        sum += list.size();
    std::printf("%zu kept\n", sum);
    return 5;
}
