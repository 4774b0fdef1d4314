/* Has the code that compilers make of functions: leaves, loops, switches, tail calls, frames of
 * every kind, calls that do not return, jumps out of functions. The test builds it with and without
 * frame pointers, and the walker does not see its unwind tables. */
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline))
typedef uint64_t (*operation)(uint64_t, uint64_t);
static volatile uint64_t sink;
static uint64_t table[4096];
NOINLINE static uint64_t leaf_mix(uint64_t a, uint64_t b) {
    return (a ^ b << 7) * 0x9e3779b97f4a7c15u;
}
NOINLINE static uint64_t leaf_loop(uint64_t a, uint64_t n) {
    uint64_t s = a;
    for (uint64_t i = 0; i < n % 37; i++)
        s = s * 31 + table[(s + i) & 4095];
    return s;
}
NOINLINE static uint64_t leaf_many(uint64_t a, uint64_t b) { /* needs callee-saved registers */
    uint64_t x[8];
    for (int i = 0; i < 8; i++)
        x[i] = a + b * i;
    for (int r = 0; r < 5; r++) {
        uint64_t c = x[0], d = x[1], e = x[2], f = x[3], g = x[4], h = x[5], i = x[6], j = x[7];
        c += d * e;
        d ^= f + g;
        e += h * i;
        f ^= j + c;
        g += d * e;
        h ^= f + g;
        i += h * c;
        j ^= i + d;
        x[0] = c;
        x[1] = d;
        x[2] = e;
        x[3] = f;
        x[4] = g;
        x[5] = h;
        x[6] = i;
        x[7] = j;
    }
    return x[0] ^ x[1] ^ x[2] ^ x[3] ^ x[4] ^ x[5] ^ x[6] ^ x[7];
}
NOINLINE static uint64_t tail(uint64_t a, uint64_t b) {
    return leaf_loop(a + 1, b);
}
NOINLINE static uint64_t choose(uint64_t a, uint64_t b) {
    switch (a % 9) {
    case 0:
        return leaf_mix(a, b);
    case 1:
        return leaf_loop(a, b) + 1;
    case 2:
        return tail(a, b);
    case 3:
        return a + b;
    case 4:
        return a * b;
    case 5:
        return leaf_many(a, b) + 3;
    case 6:
        return a - b;
    case 7:
        return a % (b | 1);
    default:
        return 9;
    }
}
NOINLINE static uint64_t with_alloca(uint64_t a, uint64_t n) {
    char *p = alloca(n % 300 + 16);
    memset(p, (int)a, n % 300 + 16);
    return (uint64_t)p[n % 16] + leaf_mix(a, n);
}
NOINLINE static uint64_t big_frame(uint64_t a, uint64_t n) {
    uint64_t room[700];
    for (unsigned i = 0; i < 20; i++)
        room[(a + i) % 700] = leaf_mix(a, i);
    return room[a % 700 % 20];
}
NOINLINE static uint64_t vary(int count, ...) {
    va_list l;
    uint64_t s = 0;
    va_start(l, count);
    for (int i = 0; i < count; i++)
        s += va_arg(l, uint64_t);
    va_end(l);
    return s;
}
NOINLINE static uint64_t recurse(uint64_t depth, uint64_t a) {
    if (depth == 0)
        return choose(a, a >> 3);
    uint64_t r = recurse(depth - 1, a * 3 + 1);
    return r + choose(r, depth);
}
NOINLINE __attribute__((noreturn)) static void die(const char *why) {
    fprintf(stderr, "%s\n", why);
    abort();
}
NOINLINE static uint64_t checked(uint64_t a, uint64_t b) {
    if (a == 0x1234567890abcdefu)
        die("one");
    uint64_t r = leaf_mix(a, b);
    if (r == 0x1234567890abcdefu)
        die("two");
    return r;
}
static operation operations[] = {leaf_mix, leaf_loop,   leaf_many, tail,
                                 choose,   with_alloca, big_frame, checked};
NOINLINE static uint64_t through_pointer(uint64_t a, uint64_t b) {
    return operations[a % 8](a, b) + 1;
}
static int compare(const void *a, const void *b) {
    return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : 1;
}
static jmp_buf place;
NOINLINE static void thrower(uint64_t a) {
    if (a % 3)
        longjmp(place, 1);
    sink += a;
}
NOINLINE static uint64_t catcher(uint64_t a) {
    if (setjmp(place))
        return a;
    thrower(a);
    return leaf_mix(a, 2);
}
typedef struct {
    uint64_t a[9];
} wide;
NOINLINE static wide by_value(wide w, uint64_t k) {
    for (int i = 0; i < 9; i++)
        w.a[i] += k * leaf_mix(i, k);
    return w;
}
int main(int argc, char **argv) {
    uint64_t rounds = argc > 1 ? strtoull(argv[1], 0, 10) : 100, s = 1;
    char text[200];
    wide w = {{0}};
    for (uint64_t r = 0; r < rounds; r++) {
        for (uint64_t i = 0; i < 300; i++) {
            s += through_pointer(s + i, i);
            s += recurse(i % 17, s);
            s += vary(3, s, i, r);
            s += checked(s, i);
            s += catcher(i);
            w = by_value(w, i);
            s += w.a[3];
        }
        uint64_t copy[128];
        memcpy(copy, table, sizeof copy);
        qsort(copy, 128, 8, compare);
        s += copy[5];
        s += (uint64_t)snprintf(text, sizeof text, "%lu %s %f", s, "x", (double)s);
        s += strlen(text);
        void *m = malloc(s % 5000 + 1);
        sink = (uint64_t)m;
        free(m);
        table[r & 4095] = s;
    }
    printf("%d\n", s != 0);
    return 0;
}
