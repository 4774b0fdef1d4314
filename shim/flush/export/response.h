/* Parses a receiver's response to an export: how many profiles it rejected and why, or why it
 * refused the whole export. Context: flush.
 */
#ifndef OTELPROF_RESPONSE_H
#define OTELPROF_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct partial_success {
    int64_t rejected_profiles; /* number as sent; a negative number has no meaning */
    char message[256];         /* text as sent; the log escapes it */
};

/* Reads the body of an ExportProfilesServiceResponse, in protobuf or JSON. An empty, truncated or
 * foreign body yields no rejected profiles and no message. */
void response_read(const uint8_t *body, size_t size, bool is_json, struct partial_success *result);

/* Reads the receiver's reason from the body of a refusal: the message of a Status in protobuf or
 * JSON; any other body, as text. Writes at most `room` bytes, the NUL included; "" if the body
 * gives no reason or is an HTML page. `content_type` is NULL if the response has none. */
void response_read_refusal(const uint8_t *body, size_t size, const char *content_type, char *text,
                           size_t room);

/* Returns true if the Content-Type means JSON. A response without one (NULL) has the format of the
 * request: `asked_in_json`. */
bool response_is_json(const char *content_type, bool asked_in_json);

#endif
