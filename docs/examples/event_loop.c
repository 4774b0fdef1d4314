/* An event loop that switches the thread's context for each request: cc -I/usr/local/include event_loop.c
 * A request keeps a context of its own. It is the thread's while the loop works for the request,
 * and what the request's code sets meanwhile is kept until the loop comes back to it. */
#include <otelprof.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { REQUESTS = 4, STEPS = 50 };

struct request {
    int ready; /* an eventfd, in the place of a socket */
    int steps;
    void (*work)(void);
    struct otelprof_context context; /* all zero: an empty one */
};

static volatile unsigned long work;

static void __attribute__((noinline)) resize_image(void) {
    for (work = 0; work < 4000000; work++)
        ;
}

static void __attribute__((noinline)) write_report(void) {
    for (work = 0; work < 4000000; work++)
        ;
}

/* As a framework's code does, which knows of no event loop. */
static void begin(const struct request *request) {
    static const uint8_t trace_id[16] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                                         0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
    static const uint8_t span_ids[2][8] = {{1, 1, 1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2, 2, 2}};
    const int is_report = request->work == write_report;
    otelprof_span_set(trace_id, span_ids[is_report]);
    otelprof_label_push("http.route", is_report ? "/reports" : "/images");
}

/* Returns whether there is more to do. */
static int step(struct request *request) {
    if (request->steps == 0)
        begin(request);
    request->work();
    return ++request->steps < STEPS;
}

static int serve(struct request *request) {
    OTELPROF_CONTEXT_SCOPE(&request->context);
    return step(request);
}

int main(void) {
    static struct request requests[REQUESTS];
    const int loop = epoll_create1(EPOLL_CLOEXEC);
    int open = REQUESTS;
    for (int i = 0; i < REQUESTS; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &requests[i]};
        requests[i] = (struct request){.ready = eventfd(1, EFD_CLOEXEC),
                                       .work = i % 2 ? write_report : resize_image};
        epoll_ctl(loop, EPOLL_CTL_ADD, requests[i].ready, &event);
    }
    while (open > 0) {
        struct epoll_event event;
        if (epoll_wait(loop, &event, 1, -1) != 1)
            continue;
        struct request *const request = event.data.ptr;
        if (serve(request))
            continue; /* its eventfd stays ready */
        close(request->ready);
        open--;
    }
    return 0;
}
