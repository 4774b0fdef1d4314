/* Parses settings from an environment that a test gives; counts the warnings and keeps the last
 * one. */
#ifndef OTELPROF_TEST_PARSED_CONFIG_H
#define OTELPROF_TEST_PARSED_CONFIG_H

#include "config.h"

struct said {
    int count;
    char last[512];
};

static char buffer[4096];

static void keep(void *arg, const char *message) {
    struct said *const said = arg;
    said->count++;
    snprintf(said->last, sizeof said->last, "%s", message);
}

static struct config parse(const char *const *environment, struct said *said) {
    struct config config;
    *said = (struct said){0};
    config_parse(environment, &config, buffer, sizeof buffer, keep, said);
    return config;
}

static struct config parse_one(const char *entry, struct said *said) {
    const char *const environment[] = {entry, NULL};
    return parse(environment, said);
}

#endif
