#include "facts.h"

#include "access.h"
#include "written_text.h"

#include <string.h>
#include <unistd.h>

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>libotelprof</title>\n<style>\n"
    ":root{color-scheme:light dark}\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}\n"
    "table{border-collapse:collapse;width:100%}\n"
    "td{padding:.4rem .8rem .4rem 0;vertical-align:top;border-top:1px solid #8884}\n"
    "code,pre{font:14px/1.5 ui-monospace,monospace}\n"
    "</style>\n</head>\n<body>\n";

/* Writes text of the profiler's own tables; text between backquotes becomes <code>. */
static void write_help(struct wire *to, const char *help) {
    bool code = false;
    for (const char *part = help;; part++) {
        const size_t size = strcspn(part, "`");
        char piece[512];
        if (size >= sizeof piece)
            return;
        memcpy(piece, part, size);
        piece[size] = 0;
        text_add_html(to, piece);
        part += size;
        if (!*part)
            return;
        text_add(to, code ? "</code>" : "<code>");
        code = !code;
    }
}

static void index_write_row(struct wire *to, const char *folder, const char *name,
                            const char *help) {
    text_add(to, "<tr><td><a href=\"%s%s\"><code>%s</code></a></td><td>", folder, name, name);
    write_help(to, help);
    text_add(to, "</td></tr>\n");
}

static void write_profiles(const struct serve *serve, struct wire *to) {
    text_add(to, "<h2>Profiles for <code>go tool pprof</code></h2>\n<table>\n");
    for (unsigned kind = 0; kind < PPROF_KINDS; kind++)
        if (pprof_facts(kind)->profiles & serve->of.api->config->types)
            index_write_row(to, "/debug/pprof/", pprof_facts(kind)->name, pprof_facts(kind)->help);
    text_add(to, "</table>\n");
}

static void write_routes(struct wire *to) {
    static const struct {
        const char *method;
        const char *path;
        const char *help;
    } routes[] = {
#define ROUTE(constant, method, path, right, help) {method, path, help},
#include "routes.def"
#undef ROUTE
    };
    text_add(to, "<h2>More</h2>\n<table>\n");
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (strcmp(routes[i].method, "GET") == 0)
            index_write_row(to, "", routes[i].path, routes[i].help);
    text_add(to, "</table>\n");
}

static void index_write_setting(void *arg, const char *name, const char *value) {
    struct wire *const to = arg;
    text_add_html(to, name);
    text_add(to, "=");
    text_add_html(to, value);
    text_add(to, "\n");
}

void write_index(const struct serve *serve, struct wire *to) {
    const char *const path = resource_find(serve->of.resource, "process.executable.path");
    text_add(to, "%s<h1>", head);
    text_add_html(to, path ? path : "?");
    text_add(to, "</h1>\n<p>Process %d, profiled by libotelprof %s.</p>\n", (int)getpid(),
             OTELPROF_VERSION);
    write_profiles(serve, to);
    write_routes(to);
    text_add(to, "<h2>Settings in force</h2>\n<pre>");
    control_list(serve->of.control, index_write_setting, to);
    text_add(to, "</pre>\n</body>\n</html>\n");
}
