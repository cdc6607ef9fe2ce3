/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which series of a store a sample belongs to: the labels that rules give it.
 *
 * A rule is NAME=TEMPLATE. In a template {field} stands for a fact about the sample, {a|b} for the first of them that is
 * known; {{ and }} are braces. A label whose template has an unknown field is left out. Fields:
 *
 *     host        the host's name, as the capture says it
 *     program     the name of the process: "gunicorn", "gunicorn (spawn)"; of -m the module alone; nothing of -c
 *     comm        the kernel's name of the process
 *     unit        the innermost systemd service of its cgroup, without ".service"
 *     container   ID of its container, 12 characters, or its name
 *     pod_uid     UID of its Kubernetes pod
 *     cgroup      path of its cgroup
 *     python      version of its interpreter: 3.12; 3.13t is free-threaded
 *     pid, tid, thread
 *     event       cpu-clock, off-cpu ...
 *     any name that the label map gives (label_map.h)
 *
 * Environments of processes are not in a trace, and so in no label. Labels of the map are added to the series, unless a rule
 * has the same name. Without a rule for them there are host, container_id, pod_uid, python_version, and
 * service_name={service_name|unit|program|comm}. A series always has a service_name, since Pyroscope wants one: where the
 * rule for it gives nothing it is the program, else the comm, else "unknown".
 *
 * Values are printable: a process can give itself any name. What is longer than PROFILE_LABEL_VALUE_MAX is cut.
 */
#ifndef SYMBOLIZE_PUSH_SERIES_H
#define SYMBOLIZE_PUSH_SERIES_H

#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/limits.h"
#include "formats/emit/emit.h"
#include "symbolize/push/profile.h"
#include "symbolize/push/request.h"

enum { SERIES_WINDOWS_MAX = 4 };

struct series;

/* Checks the rules. ERROR_USAGE says what is wrong with which. Reads no file. */
struct error *series_check_rules(const struct push_request *request);
/* Reads the label map, too, and forgets it. */
struct error *series_check_map(const struct push_request *request);
/* Likewise, and keeps it. The request and `limits`, of memory and work, are borrowed. */
struct error *series_create(const struct push_request *request, struct limits *limits, struct series **out);
void series_destroy(struct series *s);
/*
 * The number of the series of a sample, from 0. Equal labels have equal numbers. Of one window at most max_series begin,
 * in the order of their samples; the others' samples get the series with service_name "other" of their host and event, which
 * does not count. The last SERIES_WINDOWS_MAX windows are known.
 */
struct error *series_find(struct series *s, const struct emit_model *model, const struct emit_sample *sample,
                          uint64_t window_begin_ns, uint32_t *out);
/* The series of what the host of a capture lost: service_name "pycap", __name__ "pycap_lost". */
struct error *series_of_losses(struct series *s, const struct emit_model *model, uint32_t capture, uint32_t *out);
/* Its labels, sorted by name. They live as long as `s`. */
const struct profile_label *series_labels(const struct series *s, uint32_t number, uint32_t *count);
/* Windows' series that counted for "other" so far. */
uint64_t series_folded_count(const struct series *s);

#endif
