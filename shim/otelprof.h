/* libotelprof's public interface. Programs need none of it: the profiler is preloaded and
 * configured by OTEL_* variables. It lets a program find out whether it is being profiled, by
 * declaring the function weak or looking it up with dlsym().
 */
#ifndef OTELPROF_H
#define OTELPROF_H

#ifdef __cplusplus
extern "C" {
#endif

#define OTELPROF_EXPORT __attribute__((visibility("default")))

/* The version of the profiler that is loaded, "MAJOR.MINOR.PATCH"; static storage.
 * Context: any. Async-signal-safe: yes. */
OTELPROF_EXPORT const char *otelprof_version(void);

#ifdef __cplusplus
}
#endif

#endif
