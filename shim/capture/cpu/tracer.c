#include "tracer.h"

#include "thread_status.h"

pid_t tracer_of_this_thread(void) {
    char value[THREAD_STATUS_BYTES];
    pid_t tracer = 0;
    if (!thread_status_read("\nTracerPid:\t", value))
        return 0;
    for (const char *at = value; *at >= '0' && *at <= '9'; at++)
        tracer = tracer * 10 + (*at - '0');
    return tracer;
}
