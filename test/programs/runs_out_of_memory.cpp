// Holds memory, lives for a while, and then takes more until there is none (RLIMIT_AS). It catches
// no exception: std::terminate calls abort().
#include "noipa.h"

#include <climits>
#include <unistd.h>
#include <vector>

static std::vector<char *> kept;

constexpr int piece = 1 << 20;
constexpr int first_pieces = 256;
constexpr int until_seen_us = 500'000;

NOIPA static void fill_cache(long pieces) {
    for (long i = 0; i < pieces; i++) {
        auto *const text = new char[piece];
        text[0] = 1;
        kept.push_back(text);
    }
}

int main() {
    fill_cache(first_pieces);
    usleep(until_seen_us);
    fill_cache(LONG_MAX);
}
