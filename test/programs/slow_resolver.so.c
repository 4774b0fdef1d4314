/* Is preloaded behind the profiler: a name service that does not respond for ten minutes. */
#include <netdb.h>
#include <time.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **result) {
    (void)node;
    (void)service;
    (void)hints;
    (void)result;
    nanosleep(&(struct timespec){600, 0}, NULL);
    return EAI_AGAIN;
}
