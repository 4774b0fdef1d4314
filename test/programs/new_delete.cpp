// Allocates through every form of operator new and prints the true sums of each site (sites.h).
// usage: new_delete BYTES_PER_SITE
#include "sites.h"

#include <cstdlib>
#include <new>

namespace {

struct plain {
    char bytes[72];
};
struct array_element {
    char bytes[40];
};
struct alignas(128) aligned {
    char bytes[256];
};
struct kept {
    kept *next;
    char bytes[992];
};

kept *all_kept;
site new_plain{"site_new", sizeof(plain), 0, 0, 0, 0};
site new_array{"site_new_array", 10 * sizeof(array_element), 0, 0, 0, 0};
site new_nothrow{"site_new_nothrow", sizeof(plain), 0, 0, 0, 0};
site new_aligned{"site_new_aligned", sizeof(aligned), 0, 0, 0, 0};
site new_kept{"site_new_kept", sizeof(kept), 0, 0, 0, 0};

} // namespace

extern "C" {

NOIPA plain *site_new() {
    auto *p = new plain;
    KEEP(p);
    return p;
}

NOIPA array_element *site_new_array() {
    auto *p = new array_element[10];
    KEEP(p);
    return p;
}

NOIPA plain *site_new_nothrow() {
    auto *p = new (std::nothrow) plain;
    KEEP(p);
    return p;
}

NOIPA aligned *site_new_aligned() {
    auto *p = new aligned;
    KEEP(p);
    return p;
}

NOIPA kept *site_new_kept() {
    auto *p = new kept;
    KEEP(p);
    return p;
}
}

template <typename Make, typename Drop>
static void run(site &s, uint64_t bytes, Make make, Drop drop) {
    for (uint64_t i = 0; i < bytes / s.size + 4; i++) {
        drop(make());
        s.objects++;
    }
}

int main(int argc, char **argv) {
    const uint64_t bytes = argc > 1 ? strtoull(argv[1], nullptr, 10) : 100000;
    run(new_plain, bytes, site_new, [](plain *p) { delete p; });
    run(new_array, bytes, site_new_array, [](array_element *p) { delete[] p; });
    run(new_nothrow, bytes, site_new_nothrow, [](plain *p) { delete p; });
    run(new_aligned, bytes, site_new_aligned, [](aligned *p) { delete p; });
    run(new_kept, bytes, site_new_kept, [](kept *p) {
        p->next = all_kept;
        all_kept = p;
        new_kept.live++;
    });
    const site *const sites[] = {&new_plain, &new_array, &new_nothrow, &new_aligned, &new_kept};
    sites_print(sites, 5);
    return all_kept == nullptr;
}
