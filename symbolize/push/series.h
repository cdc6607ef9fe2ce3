/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which series of a store a sample belongs to: the labels that rules give it.
 *
 * A rule is NAME=TEMPLATE. In a template {field} stands for a fact about the sample, {a|b} for the first of them that is
 * known; {{ and }} are braces. A label whose template has an unknown field is left out. Fields:
 *
 *     host        the host's name, as the capture says it
 *     program     what the process runs, such as gunicorn
 *     comm        the kernel's name of the process
 *     unit        the innermost systemd service of its cgroup, without ".service"
 *     container   ID of its container, 12 characters, or its name
 *     pod_uid     UID of its Kubernetes pod
 *     cgroup      path of its cgroup
 *     python      version of its interpreter: 3.12
 *     pid, tid, thread
 *     event       cpu-clock, off-cpu ...
 *     any name that the label map gives
 *
 * Environments of processes are not in a trace, and so in no label. The label map is a file of lines
 *
 *     pod:UID|container:ID|unit:NAME|host:NAME  label=value label=value ...
 *
 * of names that only the cluster knows. Its labels are added to the series, unless a rule has the same name.
 */
#ifndef SYMBOLIZE_PUSH_SERIES_H
#define SYMBOLIZE_PUSH_SERIES_H

#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/limits.h"
#include "formats/emit/emit.h"
#include "symbolize/push/profile.h"
#include "symbolize/push/request.h"

struct series;

/* Checks rules alone. ERROR_USAGE says what is wrong with which. */
struct error *series_check_rule(const char *rule);
/* Reads the label map, too. `limits` (borrowed): of memory. */
struct error *series_create(const struct push_request *request, struct limits *limits, struct series **out);
void series_destroy(struct series *s);
/*
 * The number of the series of a sample, from 0. Equal labels have equal numbers. Of one window at most max_series begin,
 * the others' samples get the series "other" of their host and event; a new window starts the count anew.
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
