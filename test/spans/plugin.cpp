/* Is a library with a copy of OpenTelemetry's API of its own: its active spans are its own. */
#include "published.h"

extern "C" __attribute__((visibility("default"))) uint64_t in_span(uint64_t number,
                                                                   uint64_t (*inside)()) {
    api::trace::Scope scope(make_span(number));
    const uint64_t seen = published();
    return seen == number && inside ? inside() : seen;
}
