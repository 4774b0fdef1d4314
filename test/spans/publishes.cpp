/* Publishes a process context when its spans are followed already. */
#include "otelprof.h"
#include "published.h"

#include <cstdio>

/* Returns how many process contexts there are. */
static int contexts() {
    FILE *const maps = std::fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;
    while (maps && std::fgets(line, sizeof line, maps))
        count += std::strstr(line, "OTEL_CTX") != nullptr;
    if (maps)
        std::fclose(maps);
    return count;
}

int main() {
    const otelprof_attribute what = {"service.version", "1.2.3"};
    const bool followed = is_followed();
    for (int i = 0; i < 3000 && contexts() == 0; i++)
        usleep(10000);
    const int before = contexts();
    const int published = otelprof_resource_publish(&what, 1);
    for (int i = 0; i < 3000 && contexts() > 1; i++) {
        (void)otelprof_flush(10000);
        usleep(10000);
    }
    std::printf("followed %d, contexts %d, published %d, contexts %d\n", followed, before,
                published, contexts());
    api::trace::Scope scope(make_span(7));
    for (volatile unsigned i = 0; i < 100000000; i++) {
    }
    return 0;
}
