/* Is like an injector of other languages' agents (opentelemetry-injector): a preload that needs no
 * library, and whose constructor gives the process another environment. */
#include <stddef.h>

enum { MOST = 1024 };

extern char **environ __attribute__((weak));

static char *given[] = {"INJECTED=yes", "NODE_OPTIONS=--require /none/such.js",
                        "JAVA_TOOL_OPTIONS=-javaagent:/none/such.jar",
                        "OTEL_RESOURCE_ATTRIBUTES=injected=yes"};
static char *all[MOST];

__attribute__((constructor)) static void inject(int argc, char **argv, char **envp) {
    size_t count = 0;
    (void)argc;
    (void)argv;
    if (&environ == NULL)
        return;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        all[count++] = given[i];
    for (size_t i = 0; envp[i] != NULL && count + 1 < MOST; i++)
        all[count++] = envp[i];
    environ = all;
}
