/* What a receiver says after it has taken an export: how many profiles it rejected, and why; or why
 * it has refused all of it. Context: flush.
 */
#ifndef OTELPROF_ANSWER_H
#define OTELPROF_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct partial_success {
    int64_t rejected_profiles; /* as the receiver says; below 0 it makes no sense */
    char message[256];         /* its words, for the log to escape */
};

/* Reads the body of an ExportProfilesServiceResponse, protobuf or JSON. Nothing rejected and no
 * message where it is empty, cut short, or something else. */
void answer_read(const uint8_t *body, size_t size, bool is_json, struct partial_success *result);

/* Why it refuses an export, which the body of such an answer says: as a Status in protobuf or JSON,
 * or as plain text. Writes at most `room` bytes, the NUL included; "" where it says nothing, and
 * where what it says is a page for a browser. `content_type`: NULL where it has none. */
void answer_read_refusal(const uint8_t *body, size_t size, const char *content_type, char *text,
                         size_t room);

/* Whether a Content-Type means JSON; without one (NULL) it is as that of the request. */
bool answer_is_json(const char *content_type, bool asked_in_json);

#endif
