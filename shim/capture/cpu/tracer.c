#include "tracer.h"

#include "record/thread_files.h"

pid_t tracer_of_this_thread(void) {
    uint64_t tracer = 0;
    (void)thread_status_read(0, "\nTracerPid:\t", 10, &tracer);
    return (pid_t)tracer;
}
