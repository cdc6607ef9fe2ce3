/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures as Prometheus reads them from a file (the text exposition format, version 0.0.4; node_exporter's textfile
 * collector), which is rewritten as a whole.
 *
 *     metrics_family(&text, "pysym_push_refused_total", "counter", "Profiles that the store refused for good.");
 *     metrics_put_u64(&text, "pysym_push_refused_total", "reason", "too_old", 3);
 *
 * Names of families and labels are the program's own: assert() checks that they keep the rules. The figures of a family
 * follow it at once, before the next family, each with another label value.
 */
#ifndef FORMATS_BASE_METRICS_H
#define FORMATS_BASE_METRICS_H

#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"

/* Begins a family: "# HELP" and "# TYPE". `type`: "counter" or "gauge". `name` has its unit, and of a counter "_total", in it. */
void metrics_family(struct buf *out, const char *name, const char *type, const char *help);
/*
 * A figure of the family; `label` NULL: without a label. Values may be any text: they are escaped as the format says, and
 * bytes that are not UTF-8 or that a terminal would obey stand as \x1b and the like, since people look at such files, too.
 */
void metrics_put(struct buf *out, const char *name, const char *label, const char *value, double figure);
void metrics_put_u64(struct buf *out, const char *name, const char *label, const char *value, uint64_t figure);
/*
 * Replaces the file by a whole one: written beside it and renamed, mode 0644. A reader sees the old or the new text. After an
 * error the old one is there, and nothing beside it. It is not forced to disk.
 */
struct error *metrics_publish(const char *path, const struct buf *text);

#endif
