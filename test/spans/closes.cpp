/* Keeps some of its data and constants in memory that cannot be read. */
#include "otelprof.h"
#include "published.h"

#include <sys/mman.h>

enum { CLOSED_BYTES = 3 * 65536 };

alignas(65536) static char data[CLOSED_BYTES] = {1};
alignas(65536) extern const char constants[CLOSED_BYTES];
alignas(65536) const char constants[CLOSED_BYTES] = {1};

int main() {
    if (mprotect(data, CLOSED_BYTES, PROT_NONE) != 0 ||
        mprotect(const_cast<char *>(constants), CLOSED_BYTES, PROT_NONE) != 0)
        return 1;
    api::trace::Scope scope(make_span(1));
    for (int i = 0; i < 2; i++)
        (void)otelprof_flush(10000);
    std::puts("ended");
    return 0;
}
