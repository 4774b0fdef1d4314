/* Implements OTEL_PROFILES_EXPORTER=otlp_file: appends each export to a file or standard output, as
 * a line of JSON (OpenTelemetry's file exporter, one ProfilesData a line) or as a message after its
 * length (the format of the Collector's file exporter with `format: proto`).
 *
 * An export whose write fails is counted as lost and not tried again. The first failure is logged,
 * and so is the first success after it. Later ones are logged only at DEBUG, because a nearly full
 * disk takes small exports and refuses large ones. The default file is
 * otelprof-<executable>-<pid>.jsonl (.otlp for protobuf) in the directory in which the process
 * started. Context: flush.
 */
#ifndef OTELPROF_FILE_EXPORT_H
#define OTELPROF_FILE_EXPORT_H

#include "harvest.h"

struct file_export;

/* Opens the exporter. `executable`: the program's file name, without a folder; NULL if not known.
 * Returns NULL without memory. */
struct file_export *file_export_open(const struct capture_api *api, const char *executable);
void file_export_close(struct file_export *file);

/* Writes one export, encoded as config.file_format requires, without line break or length. The
 * caller keeps `bytes`. `samples`: their number, to count losses. */
void file_export_write(struct file_export *file, const void *bytes, size_t size, uint64_t samples);

#endif
