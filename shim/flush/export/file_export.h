/* OTEL_PROFILES_EXPORTER=otlp_file: each export as a line of JSON (OpenTelemetry's file exporter,
 * one ProfilesData a line), or as a message behind its length (what the Collector's file exporter
 * writes with `format: proto`), at the end of a file or on standard output.
 *
 * What cannot be written is counted as lost and logged once, and once more when writing works again
 * (a nearly full disk takes small exports and refuses large ones). Nothing is kept for later. Where
 * no file is named it is otelprof-<executable>-<pid>.jsonl (.otlp for protobuf) in the working
 * directory of the start. Context: flush.
 */
#ifndef OTELPROF_FILE_EXPORT_H
#define OTELPROF_FILE_EXPORT_H

#include "harvest.h"

struct file_export;

/* `executable`: its name, without a folder; NULL = not known. NULL: no memory. */
struct file_export *file_export_open(const struct capture_api *api, const char *executable);
void file_export_close(struct file_export *file);

/* Writes one export, encoded as config.file_format asks, without line break or length. `bytes`
 * stay the caller's. */
void file_export_write(struct file_export *file, const void *bytes, size_t size, uint64_t samples);

#endif
