/* Links samples to spans in C: cc -I/usr/local/include spans.c
 * The ids are those of a trace that the program, or a library of its, makes anyway. */
#include <otelprof.h>

static const uint8_t trace_id[16] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                                     0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};

static volatile unsigned long work;

static void __attribute__((noinline)) resize_image(void) {
    for (work = 0; work < 500000000; work++)
        ;
}

static void __attribute__((noinline)) write_report(void) {
    for (work = 0; work < 500000000; work++)
        ;
}

static void handle(const uint8_t span_id[8], const char *route, void (*handler)(void)) {
    OTELPROF_SPAN_SCOPE(trace_id, span_id);
    OTELPROF_LABEL_SCOPE("http.route", route);
    handler();
}

int main(void) {
    handle((const uint8_t[8]){1, 1, 1, 1, 1, 1, 1, 1}, "/images", resize_image);
    handle((const uint8_t[8]){2, 2, 2, 2, 2, 2, 2, 2}, "/reports", write_report);
    return 0;
}
