#include "sender.h"

#include "clock.h"
#include "compress.h"
#include "grpc_message.h"
#include "poisson.h"
#include "random_seed.h"

#include <stdlib.h>
#include <string.h>

/* Bounds the pause between two polls of a transfer: short at first, for a receiver nearby. */
static const uint64_t first_slice_nano = 200 * 1000;
static const uint64_t last_slice_nano = 20 * NANO_PER_MILLI;
/* Bounds the wait for a transfer in sender_pause(). */
static const uint64_t pause_nano = 100 * NANO_PER_MILLI;
static const uint64_t first_delay_nano = UINT64_C(1) * NANO_PER_SECOND;
static const uint64_t last_delay_nano = UINT64_C(60) * NANO_PER_SECOND;
/* Bounds the last wait for a receiver that has never responded. Only the profiler's sleep counts:
 * on a busy machine, where everything takes longer, the receiver gets as many chances. */
static const uint64_t unanswered_nano = 200 * NANO_PER_MILLI;

struct sender {
    const struct capture_api *api;
    struct transport *transport;
    char *receiver; /* its name in the log */
    struct queue queue;
    struct export *current; /* under way */
    uint64_t slice_nano;
    uint64_t delay_nano;
    uint64_t not_before; /* time of the next try */
    bool told_to_wait;   /* the receiver asked for that time */
    bool ending;         /* the last sender_step() had `last` */
    uint64_t slept_nano; /* at the end, while waiting for the receiver */
    bool answered;       /* the receiver has responded at least once */
    uint64_t random;
    bool away;      /* the last try did not reach the receiver */
    bool away_said; /* at a level shown by default, by this process */
    bool claimed;   /* the program claims libcurl: nothing is sent, and that was logged */
    bool refusal_said;
    bool partial_said;
    char problem[sizeof((struct transport_answer *)0)->message]; /* last transfer's; "": none */
};

/* Removes secrets: a URL may hold a password, "scheme://user:secret@host", or a key, "?key=secret".
 */
static char *without_secrets(const char *url) {
    const char *const scheme = strstr(url, "://");
    const char *const host = scheme ? scheme + 3 : url;
    const char *const at = memrchr(host, '@', strcspn(host, "/?#"));
    const char *const shown = at ? at + 1 : host;
    return strndup(shown, strcspn(shown, "?#"));
}

static char *receiver_of(const struct config *config) {
    return config->unix_socket[0] ? strdup(config->unix_socket) : without_secrets(config->endpoint);
}

static void count_lost(struct sender *s, enum drop_reason reason, uint64_t samples) {
    if (samples)
        s->api->count_drop(reason, samples);
}

/* Returns the log level for failures to send. Without a configured endpoint it is DEBUG, because
 * perhaps no receiver exists: programs that print nothing by themselves would log it wherever the
 * preload is set and no Collector runs. */
static enum log_level level_where_sent_to(const struct sender *s, enum log_topic topic) {
    if (!s->api->config->endpoint_set)
        return LOG_DEBUG;
    return log_level_in_tree(s->api->log, topic, LOG_WARN);
}

/* Stops sending, and stops the profiler if it has no other exporter. */
static void leave_to_program(struct sender *s) {
    const char *const function = transport_claim(s->transport);
    s->claimed = true;
    log_write(
        s->api->log, level_where_sent_to(s, LOG_CLAIMED),
        "the program, or a library of its, calls %s, which has its effect only if nobody else "
        "uses that library before: no profiles are sent; OTEL_PROFILES_EXPORTER=otlp_file "
        "writes them to a file",
        function);
    count_lost(s, DROP_CLAIMED, queue_clear(&s->queue));
    if (s->current) {
        count_lost(s, DROP_CLAIMED, s->current->samples);
        export_free(s->current);
        s->current = NULL;
    }
    if (s->api->config->exporters == EXPORTER_OTLP && !*s->api->config->listen)
        s->api->give_up("nothing can be sent");
}

struct sender *sender_open(const struct capture_api *api) {
    struct sender *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->api = api;
    s->queue.max_bytes = api->config->max_queue_bytes;
    s->delay_nano = first_delay_nano;
    s->random = random_seed();
    s->receiver = receiver_of(api->config);
    s->transport = s->receiver ? transport_open(api) : NULL;
    if (s->transport && transport_claim(s->transport))
        leave_to_program(s);
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
        s->api->count_drop(DROP_AT_EXIT, lost);
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

static void report_away(struct sender *s, const struct transport_answer *answer) {
    s->api->endpoint_answers(false);
    if (s->away) {
        log_debug(s->api->log, "%s: %s; trying again", s->receiver, answer->message);
        return;
    }
    const enum log_level level = level_where_sent_to(s, LOG_AWAY);
    s->away = true;
    s->away_said = level != LOG_DEBUG;
    log_write(s->api->log, level,
              "profiles cannot be sent to %s (%s); trying again, keeping the newest", s->receiver,
              answer->message);
}

static void report_refused(struct sender *s, const struct transport_answer *answer) {
    if (s->refusal_said) {
        log_debug(s->api->log, "%s refused profiles: %s", s->receiver, answer->message);
        return;
    }
    s->refusal_said = true;
    log_write(s->api->log, log_level_in_tree(s->api->log, LOG_REFUSED, LOG_WARN),
              "%s refused profiles (%s); they are dropped", s->receiver, answer->message);
}

/* Logs the receiver's return: at INFO if this process logged its absence where it is shown by
 * default, else at DEBUG. */
static void report_back(struct sender *s) {
    if (!s->away)
        return;
    log_write(s->api->log, s->away_said ? LOG_INFO : LOG_DEBUG, "profiles are being sent again");
    if (s->away_said)
        log_forget(s->api->log, LOG_AWAY);
    s->away = false;
}

static void is_answered(struct sender *s) {
    s->answered = true;
    s->api->endpoint_answers(true);
}

static void report_accepted(struct sender *s, const struct transport_answer *answer) {
    report_back(s);
    is_answered(s);
    s->api->export_ended(true);
    if ((answer->rejected_profiles == 0 && !answer->message[0]) || s->partial_said)
        return;
    const enum log_level level = log_level_in_tree(s->api->log, LOG_PARTLY, LOG_WARN);
    s->partial_said = true;
    if (answer->rejected_profiles == 0)
        log_write(s->api->log, level, "the receiver took the profiles, with a warning: %s",
                  answer->message);
    else if (answer->rejected_profiles < 0)
        log_write(s->api->log, level,
                  "the receiver says that it rejected fewer than 0 profiles, which is taken for "
                  "none: %s",
                  answer->message);
    else
        log_write(s->api->log, level, "the receiver rejected %lld profiles: %s",
                  (long long)answer->rejected_profiles, answer->message);
}

/* --- steps --- */

/* Drops all exports: the process ends before the next try. */
static void give_up(struct sender *s, uint64_t more) {
    count_lost(s, DROP_AT_EXIT, more + queue_clear(&s->queue));
}

static void retry_later(struct sender *s, const struct transport_answer *answer, bool last) {
    report_away(s, answer);
    struct export *const export = s->current;
    s->current = NULL;
    if (last && !answer->connected) { /* no receiver: do not delay the end */
        give_up(s, export->samples);
        export_free(export);
        return;
    }
    count_lost(s, DROP_QUEUE_FULL, queue_put_back(&s->queue, export));
    /* uniform between half and all of the delay */
    uint64_t delay = s->delay_nano / 2 + random_next(&s->random) % (s->delay_nano / 2);
    s->told_to_wait = answer->retry_after_nano != 0;
    if (s->told_to_wait)
        delay =
            answer->retry_after_nano < last_delay_nano ? answer->retry_after_nano : last_delay_nano;
    s->not_before = monotonic_nano() + delay;
    s->delay_nano = s->delay_nano * 2 < last_delay_nano ? s->delay_nano * 2 : last_delay_nano;
}

static void finish(struct sender *s, enum transport_state state,
                   const struct transport_answer *answer, bool last) {
    memcpy(s->problem, answer->message, sizeof s->problem);
    if (state == TRANSPORT_ACCEPTED)
        s->problem[0] = 0;
    if (state == TRANSPORT_RETRY) {
        retry_later(s, answer, last);
        return;
    }
    if (state == TRANSPORT_ACCEPTED) {
        report_accepted(s, answer);
    } else {
        report_refused(s, answer);
        is_answered(s);
        s->api->export_ended(false);
        count_lost(s, DROP_REJECTED, s->current->samples);
    }
    s->delay_nano = first_delay_nano;
    s->not_before = 0;
    export_free(s->current);
    s->current = NULL;
}

static enum transport_state begin(struct sender *s) {
    s->current = queue_pop(&s->queue);
    s->slice_nano = first_slice_nano;
    return transport_begin(s->transport, s->current);
}

/* The end of the process cuts the sender's own delay short, because the receiver may be back. */
static bool is_time(const struct sender *s, bool end_begins) {
    return (end_begins && !s->told_to_wait) || monotonic_nano() >= s->not_before;
}

static bool is_too_late(const struct sender *s, bool last) {
    const uint64_t timeout = s->api->config->shutdown_timeout_ms * NANO_PER_MILLI;
    return last && s->not_before > monotonic_nano() + timeout;
}

static uint64_t next_look(struct sender *s) {
    const uint64_t at = monotonic_nano() + s->slice_nano;
    s->slept_nano += s->ending ? s->slice_nano : 0;
    s->slice_nano = s->slice_nano * 2 < last_slice_nano ? s->slice_nano * 2 : last_slice_nano;
    return at;
}

static bool is_waited_for_enough(const struct sender *s) {
    return s->ending && !s->answered && !s->api->config->shutdown_timeout_set &&
           s->slept_nano >= unanswered_nano;
}

/* Gives up on a receiver that has not responded in the time that an end may take. */
static uint64_t leave_unanswered(struct sender *s) {
    static const struct transport_answer nothing = {.message = "no answer before the end"};
    transport_cancel(s->transport);
    finish(s, TRANSPORT_RETRY, &nothing, true);
    return UINT64_MAX;
}

const char *sender_problem(const struct sender *s) {
    return s->problem;
}

uint64_t sender_step(struct sender *s, bool last) {
    struct transport_answer answer = {.message = "no memory for a transfer"};
    enum transport_state state = TRANSPORT_BUSY;
    const bool end_begins = last && !s->ending;
    s->ending = last;
    if (!s->current) {
        if (!s->queue.first)
            return UINT64_MAX;
        if (!is_time(s, end_begins)) {
            if (!is_too_late(s, last))
                return s->not_before;
            give_up(s, 0);
            return UINT64_MAX;
        }
        state = begin(s);
    }
    if (state == TRANSPORT_BUSY)
        state = transport_step(s->transport, &answer);
    if (state == TRANSPORT_CLOSED)
        return 0;
    if (state == TRANSPORT_CLAIMED) {
        leave_to_program(s);
        return UINT64_MAX;
    }
    if (state == TRANSPORT_BUSY)
        return is_waited_for_enough(s) ? leave_unanswered(s) : next_look(s);
    finish(s, state, &answer, last);
    return s->queue.first ? monotonic_nano() + 1 : UINT64_MAX;
}

static void break_off(struct sender *s) {
    transport_cancel(s->transport);
    count_lost(s, DROP_QUEUE_FULL, queue_put_back(&s->queue, s->current));
    s->current = NULL;
}

void sender_pause(struct sender *s) {
    const uint64_t end = monotonic_nano() + pause_nano;
    transport_prepare(s->transport);
    while (s->current) {
        struct transport_answer answer;
        const enum transport_state state = transport_step(s->transport, &answer);
        if (state == TRANSPORT_CLOSED)
            return;
        if (state != TRANSPORT_BUSY)
            finish(s, state, &answer, false);
        else if (monotonic_nano() >= end)
            break_off(s);
        else
            (void)s->api->wait(next_look(s));
    }
}
