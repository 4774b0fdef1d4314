// Is one link of throw_across's chain: calls the next, with a destructor to be run while unwinding.
#ifndef TEST_RELAY_H
#define TEST_RELAY_H

#include <cstdio>

struct chain {
    const struct station *stations; // the rest of the chain
    int left;
    void (*end)(void *);
    void *arg;
    bool quiet;
};

typedef void relay_function(const chain &way);
struct station {
    relay_function *relay;
};

struct guard {
    const chain &way;
    const char *name;
    ~guard() {
        if (!way.quiet)
            std::printf("  leaves %s\n", name);
    }
};

#define RELAY(name, on_exception)                                                                  \
    extern "C" __attribute__((visibility("default"))) void relay(const chain &way) {               \
        guard here{way, name};                                                                     \
        try {                                                                                      \
            if (way.left == 0)                                                                     \
                way.end(way.arg);                                                                  \
            else                                                                                   \
                way.stations->relay(                                                               \
                    {way.stations + 1, way.left - 1, way.end, way.arg, way.quiet});                \
        } catch (const int &) {                                                                    \
            on_exception;                                                                          \
        }                                                                                          \
    }

#endif
