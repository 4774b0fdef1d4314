/* A class with the name of OpenTelemetry's storage and other signatures: VARIANT 1 to 12. Says "ok"
 * if each call gives what it must, before and while the profiler follows the class. */
#include "other_storage.h"

#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#if VARIANT == 1 // extra integers, an integer result
#define ATTACH long Attach(int a, int b, int c, int d, int e)
#define BODY   return a + 10 * b + 100 * c + 1000 * d + 10000L * e
#define CALL   s->Attach(1, 2, 3, 4, 5) == 54321
#elif VARIANT == 2 // a struct by value through a hidden pointer
struct Big {
    long w[6];
};
#define ATTACH Big Attach(long a, long b)
#define BODY                                                                                       \
    return Big {                                                                                   \
        { a, b, a + b, 4, 5, 6 }                                                                   \
    }
#define CALL s->Attach(7, 8).w[2] == 15
#elif VARIANT == 3
#define ATTACH std::string Attach(std::string a)
#define BODY   return a + "!"
#define CALL                                                                                       \
    s->Attach("a long string that is on the heap, surely") ==                                      \
        "a long string that is on the heap, surely!"
#elif VARIANT == 4
#define ATTACH double Attach(double a, double b)
#define BODY   return a * b
#define CALL   s->Attach(2.5, 4) == 10
#elif VARIANT == 5 // arguments on the stack
#define ATTACH long Attach(long a, long b, long c, long d, long e, long f, long g, long h)
#define BODY   return a + b + c + d + e + f * g - h
#define CALL   s->Attach(1, 2, 3, 4, 5, 6, 7, 8) == 49
#elif VARIANT == 6
#define ATTACH long Attach(const char *format, ...)
#define BODY                                                                                       \
    va_list l;                                                                                     \
    va_start(l, format);                                                                           \
    long sum = 0;                                                                                  \
    for (; *format; format++)                                                                      \
        sum += *format == 'd' ? (long)va_arg(l, double) : va_arg(l, long);                         \
    va_end(l);                                                                                     \
    return sum
#define CALL s->Attach("ldldlllll", 1L, 2.0, 3L, 4.0, 5L, 6L, 7L, 8L, 9L) == 45
#elif VARIANT == 7
#define ATTACH long Attach(long a)
#define BODY   throw std::runtime_error(std::to_string(a))
static bool throws(struct Holder *);
#define CALL   throws((struct Holder *)s)
#elif VARIANT == 8
static std::jmp_buf place;
#define ATTACH void Attach(long a)
#define BODY   std::longjmp(place, (int)a)
static bool jumps(struct Holder *);
#define CALL   jumps((struct Holder *)s)
#elif VARIANT == 9 // a pair of registers
struct Two {
    long a, b;
};
#define ATTACH Two Attach(long a, long b)
#define BODY                                                                                       \
    return Two {                                                                                   \
        b, a                                                                                       \
    }
#define CALL s->Attach(3, 4).a == 4 && s->Attach(3, 4).b == 3
#elif VARIANT == 10
#define ATTACH std::unique_ptr<long> Attach(long a, std::unique_ptr<long> b)
#define BODY                                                                                       \
    *b += a;                                                                                       \
    return b
#define CALL *s->Attach(1, std::make_unique<long>(41)) == 42
#elif VARIANT == 11
#define ATTACH void Attach()
#define BODY   calls++
#define CALL   (s->Attach(), true)
#else // long double
#define ATTACH long double Attach(long double a, int b)
#define BODY   return a * b
#define CALL   s->Attach(1.5L, 4) == 6.0L
#endif
static long calls;
namespace opentelemetry {
inline namespace v1 {
namespace context {
struct RuntimeContextStorage {
    virtual long GetCurrent() = 0;
    virtual ATTACH = 0;
    virtual double Detach(double a, long b) = 0;
    virtual ~RuntimeContextStorage() {
    }
};
struct ThreadLocalContextStorage : RuntimeContextStorage {
    long GetCurrent() override {
        return 5;
    }
    ATTACH override {
        BODY;
    }
    double Detach(double a, long b) override {
        return a + (double)b;
    }
};
} // namespace context
} // namespace v1
} // namespace opentelemetry
using namespace opentelemetry::context;
static thread_local std::string with_destructor = "so that the object is searched";
static RuntimeContextStorage *volatile storage = new ThreadLocalContextStorage;
#if VARIANT == 7
static bool throws(Holder *) {
    RuntimeContextStorage *s = storage;
    try {
        s->Attach(9);
    } catch (std::runtime_error &e) {
        return std::string(e.what()) == "9";
    }
    return false;
}
#elif VARIANT == 8
static bool jumps(Holder *) {
    RuntimeContextStorage *s = storage;
    int r = setjmp(place);
    if (r == 0)
        s->Attach(9);
    return r == 9;
}
#endif
int main() {
    return calls_until_followed(storage, [] {
        RuntimeContextStorage *s = storage;
        return !with_destructor.empty() && s->GetCurrent() == 5 && (CALL) &&
               s->Detach(1.5, 2) == 3.5;
    });
}
