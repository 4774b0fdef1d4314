#include "sender.h"

#include "clock.h"
#include "encode/compress.h"
#include "grpc_message.h"
#include "poisson.h"
#include "random_seed.h"
#include "request_headers.h"

#include <stdlib.h>
#include <string.h>

/* Bounds the pause between two polls of a transfer: short at first, for a receiver nearby. */
static const uint64_t first_slice_nano = 200 * 1000;
static const uint64_t last_slice_nano = 20 * NANO_PER_MILLI;
/* Bounds the wait for a transfer in sender_pause(). */
static const uint64_t pause_nano = 100 * NANO_PER_MILLI;
static const uint64_t first_delay_nano = UINT64_C(1) * NANO_PER_SECOND;
static const uint64_t last_delay_nano = UINT64_C(60) * NANO_PER_SECOND;
/* Bounds the last wait for a receiver that has never responded, unless the operator has set the
 * timeout of the end. Only the time that the profiler sleeps counts: so the receiver is polled as
 * often on a busy machine, where all work takes longer, as on an idle one. */
static const uint64_t no_response_nano = 200 * NANO_PER_MILLI;

struct sender {
    const struct capture_api *api;
    struct transport *transport;
    char *receiver; /* name of the receiver in the log */
    struct queue queue;
    struct export *current; /* the export that is being sent */
    uint64_t slice_nano;
    uint64_t delay_nano;
    uint64_t not_before;  /* earliest time of the next try */
    bool has_retry_after; /* the receiver requested the time `not_before` */
    bool ending;          /* the last sender_step() was called with `last` */
    uint64_t slept_nano;  /* time slept while waiting for the receiver, at the end of the process */
    bool has_responded;   /* the receiver has responded at least once */
    uint64_t random;
    bool away;       /* the last try failed, and may be repeated */
    bool away_shown; /* this process has logged the absence, at a level shown by default */
    bool claimed;    /* the program claims libcurl, so nothing is sent; the claim was logged */
    bool refusal_logged;
    bool partial_logged;
    /* why the last transfer failed; "": it did not fail, or there was none */
    char problem[sizeof((struct transport_response *)0)->message];
};

/* Returns the receiver's name for the log, malloc'ed: the Unix socket, or the URL without its
 * scheme and without secrets. A URL may hold a password, "scheme://user:secret@host", or a key,
 * "?key=secret".
 */
static char *receiver_name(const struct config *config) {
    const char *const url = config->endpoint;
    if (config->unix_socket[0])
        return strdup(config->unix_socket);
    const char *const scheme = strstr(url, "://");
    const char *const host = scheme ? scheme + 3 : url;
    const char *const at = memrchr(host, '@', strcspn(host, "/?#"));
    const char *const shown = at ? at + 1 : host;
    return strndup(shown, strcspn(shown, "?#"));
}

static void count_lost(struct sender *s, enum drop_reason reason, uint64_t samples) {
    if (samples)
        s->api->counters.count_drop(reason, samples);
}

/* Returns the log level for failures to send. Without a configured endpoint it is DEBUG, because
 * perhaps no receiver exists: wherever the preload is set and no Collector runs, even programs that
 * print nothing by themselves would log the failure. */
static enum log_level send_failure_level(const struct sender *s, enum log_topic topic) {
    if (!s->api->config->endpoint_set)
        return LOG_DEBUG;
    return log_level_in_tree(s->api->log, topic, LOG_WARN);
}

/* Stops sending, and drops all exports. Stops the profiler, too, if it has no other exporter and
 * the process does not listen. */
static void sender_leave_to_program(struct sender *s) {
    const char *const function = transport_claim(s->transport);
    s->claimed = true;
    log_write(
        s->api->log, send_failure_level(s, LOG_CLAIMED),
        "the program, or one of its libraries, calls %s, which takes effect only if nothing has "
        "used that library before: no profiles are sent; OTEL_PROFILES_EXPORTER=otlp_file "
        "writes them to a file",
        function);
    count_lost(s, DROP_CLAIMED, queue_clear(&s->queue));
    if (s->current) {
        count_lost(s, DROP_CLAIMED, s->current->samples);
        export_free(s->current);
        s->current = NULL;
    }
    if (s->api->config->exporters == EXPORTER_OTLP && !*s->api->config->listen)
        s->api->lifecycle.give_up("nothing can be sent");
}

struct sender *sender_open(const struct capture_api *api) {
    struct sender *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->api = api;
    s->queue.max_bytes = api->config->max_queue_bytes;
    s->delay_nano = first_delay_nano;
    s->random = random_seed();
    s->receiver = receiver_name(api->config);
    s->transport = s->receiver ? transport_open(api) : NULL;
    if (s->transport && transport_claim(s->transport))
        sender_leave_to_program(s);
    if (s->transport)
        return s;
    free(s->receiver);
    free(s);
    return NULL;
}

void sender_close(struct sender *s) {
    if (!s)
        return;
    uint64_t lost = queue_clear(&s->queue);
    if (s->current) {
        lost += s->current->samples;
        export_free(s->current);
    }
    if (lost) {
        s->api->counters.count_drop(DROP_AT_EXIT, lost);
        log_debug(s->api->log, "%llu samples could not be sent before the end",
                  (unsigned long long)lost);
    }
    transport_close(s->transport);
    free(s->receiver);
    free(s);
}

void sender_add(struct sender *s, uint8_t *bytes, size_t size, uint64_t samples) {
    if (s->claimed) {
        free(bytes);
        count_lost(s, DROP_CLAIMED, samples);
        return;
    }
    const char *const encoding = compress_in_place(s->api->config->compression, &bytes, &size);
    if (s->api->config->protocol == PROTOCOL_GRPC && !grpc_wrap(&bytes, &size, encoding)) {
        free(bytes);
        count_lost(s, DROP_QUEUE_FULL, samples);
        return;
    }
    count_lost(s, DROP_QUEUE_FULL, queue_push(&s->queue, bytes, size, encoding, samples));
}

/* --- reporting --- */

static void report_away(struct sender *s, const struct transport_response *response) {
    s->api->lifecycle.endpoint_responded(false);
    if (s->away) {
        log_debug(s->api->log, "profiles still cannot be sent to %s: %s; trying again", s->receiver,
                  response->message);
        return;
    }
    const enum log_level level = send_failure_level(s, LOG_AWAY);
    s->away = true;
    s->away_shown = level != LOG_DEBUG;
    log_write(s->api->log, level,
              "profiles cannot be sent to %s (%s); trying again, keeping the newest", s->receiver,
              response->message);
}

static void sender_report_refused(struct sender *s, const struct transport_response *response) {
    if (s->refusal_logged) {
        log_debug(s->api->log, "%s refused profiles: %s", s->receiver, response->message);
        return;
    }
    s->refusal_logged = true;
    log_write(s->api->log, log_level_in_tree(s->api->log, LOG_REFUSED, LOG_WARN),
              "%s refused profiles (%s); they are dropped", s->receiver, response->message);
}

static void sender_record_response(struct sender *s) {
    s->has_responded = true;
    s->api->lifecycle.endpoint_responded(true);
}

static void report_accepted(struct sender *s, const struct transport_response *response) {
    /* logged at INFO only if this process has logged the absence at a level shown by default */
    if (s->away) {
        log_write(s->api->log, s->away_shown ? LOG_INFO : LOG_DEBUG,
                  "profiles are being sent again");
        if (s->away_shown)
            log_forget(s->api->log, LOG_AWAY);
        s->away = false;
    }
    sender_record_response(s);
    s->api->counters.export_ended(true);
    if ((response->rejected_profiles == 0 && !response->message[0]) || s->partial_logged)
        return;
    const enum log_level level = log_level_in_tree(s->api->log, LOG_PARTLY, LOG_WARN);
    s->partial_logged = true;
    if (response->rejected_profiles == 0)
        log_write(s->api->log, level, "the receiver took the profiles, with a warning: %s",
                  response->message);
    else if (response->rejected_profiles < 0)
        log_write(
            s->api->log, level,
            "the receiver reported a negative number of rejected profiles, which is taken as 0: %s",
            response->message);
    else
        log_write(s->api->log, level, "the receiver rejected %lld profiles: %s",
                  (long long)response->rejected_profiles, response->message);
}

/* --- steps --- */

/* Drops all exports in the queue, because the process ends before the next try. `more`: further
 * samples that are lost. */
static void give_up(struct sender *s, uint64_t more) {
    count_lost(s, DROP_AT_EXIT, more + queue_clear(&s->queue));
}

/* Returns the milliseconds that the next try of the export may take. All tries of an export
 * together have request_timeout_ms(). */
static uint64_t try_timeout_ms(const struct sender *s, struct export *export) {
    const uint64_t now = monotonic_nano();
    if (export->until_nano <= now)
        export->until_nano = now + request_timeout_ms(s->api->config) * NANO_PER_MILLI;
    return (export->until_nano - now + NANO_PER_MILLI - 1) / NANO_PER_MILLI;
}

/* Ends the export's time if a try after that delay would have less time than the delay: then the
 * next try begins the export again. */
static void sender_end_short_time(const struct sender *s, struct export *export, uint64_t delay) {
    if (s->not_before + delay > export->until_nano)
        export->until_nano = 0;
}

static void retry_later(struct sender *s, const struct transport_response *response, bool last) {
    report_away(s, response);
    struct export *const export = s->current;
    s->current = NULL;
    /* an absent receiver must not delay the end of the process */
    if (last && !response->connected) {
        give_up(s, export->samples);
        export_free(export);
        return;
    }
    /* draws the pause uniformly between half and all of the delay */
    uint64_t delay = s->delay_nano / 2 + random_next(&s->random) % (s->delay_nano / 2);
    s->has_retry_after = response->retry_after_nano != 0;
    if (s->has_retry_after)
        delay = response->retry_after_nano < last_delay_nano ? response->retry_after_nano
                                                             : last_delay_nano;
    s->not_before = monotonic_nano() + delay;
    sender_end_short_time(s, export, delay);
    count_lost(s, DROP_QUEUE_FULL, queue_put_back(&s->queue, export));
    s->delay_nano = s->delay_nano * 2 < last_delay_nano ? s->delay_nano * 2 : last_delay_nano;
}

static void sender_finish_transfer(struct sender *s, enum transport_state state,
                                   const struct transport_response *response, bool last) {
    memcpy(s->problem, response->message, sizeof s->problem);
    if (state == TRANSPORT_ACCEPTED)
        s->problem[0] = 0;
    if (state == TRANSPORT_RETRY) {
        retry_later(s, response, last);
        return;
    }
    if (state == TRANSPORT_ACCEPTED) {
        report_accepted(s, response);
    } else {
        sender_report_refused(s, response);
        sender_record_response(s);
        s->api->counters.export_ended(false);
        count_lost(s, DROP_REJECTED, s->current->samples);
    }
    s->delay_nano = first_delay_nano;
    s->not_before = 0;
    export_free(s->current);
    s->current = NULL;
}

static uint64_t sender_next_poll(struct sender *s) {
    const uint64_t at = monotonic_nano() + s->slice_nano;
    s->slept_nano += s->ending ? s->slice_nano : 0;
    s->slice_nano = s->slice_nano * 2 < last_slice_nano ? s->slice_nano * 2 : last_slice_nano;
    return at;
}

const char *sender_problem(const struct sender *s) {
    return s->problem;
}

uint64_t sender_step(struct sender *s, bool last) {
    static const struct transport_response nothing = {.message = "no response before the end"};
    struct transport_response response = {.message = "no memory for a transfer"};
    enum transport_state state = TRANSPORT_BUSY;
    const bool end_begins = last && !s->ending;
    s->ending = last;
    if (!s->current) {
        if (!s->queue.first)
            return UINT64_MAX;
        /* at the process's end the sender's own delay is cut short, because the receiver may be
         * back */
        const bool is_time =
            (end_begins && !s->has_retry_after) || monotonic_nano() >= s->not_before;
        if (!is_time) {
            const uint64_t timeout = s->api->config->shutdown_timeout_ms * NANO_PER_MILLI;
            if (!last || s->not_before <= monotonic_nano() + timeout)
                return s->not_before;
            give_up(s, 0);
            return UINT64_MAX;
        }
        s->current = queue_pop(&s->queue);
        s->slice_nano = first_slice_nano;
        if (end_begins) /* the end has a limit of its own */
            s->current->until_nano = 0;
        state = transport_begin(s->transport, s->current, try_timeout_ms(s, s->current));
    }
    if (state == TRANSPORT_BUSY)
        state = transport_step(s->transport, &response);
    if (state == TRANSPORT_CLOSED)
        return 0;
    if (state == TRANSPORT_CLAIMED) {
        sender_leave_to_program(s);
        return UINT64_MAX;
    }
    if (state == TRANSPORT_BUSY) {
        const bool has_waited_enough = s->ending && !s->has_responded &&
                                       !s->api->config->shutdown_timeout_set &&
                                       s->slept_nano >= no_response_nano;
        if (!has_waited_enough)
            return sender_next_poll(s);
        transport_cancel(s->transport);
        sender_finish_transfer(s, TRANSPORT_RETRY, &nothing, true);
        return UINT64_MAX;
    }
    sender_finish_transfer(s, state, &response, last);
    return s->queue.first ? monotonic_nano() + 1 : UINT64_MAX;
}

void sender_pause(struct sender *s) {
    const uint64_t end = monotonic_nano() + pause_nano;
    transport_prepare(s->transport);
    while (s->current) {
        struct transport_response response;
        const enum transport_state state = transport_step(s->transport, &response);
        if (state == TRANSPORT_CLOSED)
            return;
        if (state != TRANSPORT_BUSY) {
            sender_finish_transfer(s, state, &response, false);
        } else if (monotonic_nano() < end) {
            (void)s->api->wait.until(sender_next_poll(s));
        } else {
            transport_cancel(s->transport);
            s->current->until_nano = 0;
            count_lost(s, DROP_QUEUE_FULL, queue_put_back(&s->queue, s->current));
            s->current = NULL;
        }
    }
}
