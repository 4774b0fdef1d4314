/* Is the smallest module of redis: one command, SOAK.WORK, that allocates enough to be sampled.
 * redismodule.h is not packaged, and not needed: the first word of the context is the function that
 * finds all others by name. */
#include <stdlib.h>
#include <string.h>

int RedisModule_OnLoad(void *context, void **arguments, int count);

typedef int find_function(const char *name, void *function);
typedef void set_attributes(void *context, const char *name, int version, int api_version);
typedef int command(void *context, void **arguments, int count);
typedef int create_command(void *context, const char *name, command *run, const char *flags,
                           int first_key, int last_key, int key_step);
typedef int reply_with_number(void *context, long long number);

static reply_with_number *reply;

__attribute__((noipa)) static int soak_work(void *context, void **arguments, int count) {
    (void)arguments;
    (void)count;
    void *volatile seen = malloc(8 << 20); /* many times the interval between samples */
    free(seen);
    return reply(context, 1);
}

__attribute__((visibility("default"))) int RedisModule_OnLoad(void *context, void **arguments,
                                                              int count) {
    find_function *find;
    set_attributes *name_it;
    create_command *create;
    (void)arguments;
    (void)count;
    memcpy(&find, context, sizeof find);
    if (find("RedisModule_SetModuleAttribs", &name_it) != 0 ||
        find("RedisModule_CreateCommand", &create) != 0 ||
        find("RedisModule_ReplyWithLongLong", &reply) != 0)
        return 1;
    name_it(context, "soak", 1, 1);
    return create(context, "soak.work", soak_work, "fast", 0, 0, 0);
}
