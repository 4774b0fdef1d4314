/* A fork of the API: its first arguments are the API's, more follow, some of them on the stack, and
 * a result differs. Says "ok" if each call gives what it must. */
#include "other_storage.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
namespace opentelemetry {
inline namespace v1 {
namespace context {
struct Context {
    struct DataList {
        const char *key;
        std::shared_ptr<DataList> next;
        size_t length;
        std::shared_ptr<int> value;
        unsigned char kind;
    };
    std::shared_ptr<DataList> head;
};
struct Token {
    Context context;
    ~Token();
};
using Held = std::unique_ptr<Token>;
struct RuntimeContextStorage {
    virtual long GetCurrent(long a, const std::string &s) = 0;
    virtual Held Attach(const Context &, long a, double b, long c, long d, long e, long f, long g,
                        double h, std::string s) = 0;
    virtual double Detach(Token &, double a, long b) = 0;
    virtual ~RuntimeContextStorage() {
    }
};
struct ThreadLocalContextStorage : RuntimeContextStorage {
    long GetCurrent(long a, const std::string &s) override {
        return a + (long)s.size();
    }
    Held Attach(const Context &context, long a, double b, long c, long d, long e, long f, long g,
                double h, std::string s) override {
        if (a + b + (double)(c + d + e + f + g) + h != 36.5 ||
            s != "a long string that is on the heap, surely")
            throw 7;
        return Held(new Token{context});
    }
    double Detach(Token &token, double a, long b) override {
        return token.context.head->kind ? a : (double)b;
    }
};
Token::~Token() {
}
} // namespace context
} // namespace v1
} // namespace opentelemetry
using namespace opentelemetry::context;
static thread_local std::string with_destructor = "so that the object is searched";
static RuntimeContextStorage *volatile storage = new ThreadLocalContextStorage;
int main() {
    Context context;
    context.head.reset(new Context::DataList());
    context.head->key = "key";
    context.head->length = 3;
    context.head->kind = 1;
    const int status = calls_until_followed(storage, [&context] {
        RuntimeContextStorage *s = storage;
        /* each call's arguments lie elsewhere in a page, also across its end */
        static unsigned step;
        volatile char *const pad =
            static_cast<volatile char *>(__builtin_alloca(16 * (step++ % 256) + 16));
        pad[0] = 1;
        Held held = s->Attach(context, 1, 2.5, 3, 4, 5, 6, 7, 8,
                              "a long string that is on the heap, surely");
        const std::string three("abc");
        return s->GetCurrent(4, three) == 7 && held && held->context.head == context.head &&
               s->Detach(*held, 2.25, 9) == 2.25 && !with_destructor.empty();
    });
    return context.head.use_count() == 1 ? status : 2;
}
