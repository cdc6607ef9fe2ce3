/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as a push gets them, with labels and times but made-up contents. */
#ifndef TESTS_UNIT_PUSH_FIXTURE_H
#define TESTS_UNIT_PUSH_FIXTURE_H

#include "formats/base/clock.h"
#include "symbolize/push/profile.h"

#define PUSH_FIXTURE_BEGIN_NS (1790000010 * NS_PER_S)

static const struct profile_label push_fixture_labels[][2] = {
    {{PROFILE_NAME_LABEL, "process_cpu"}, {"service_name", "shop"}},
    {{PROFILE_NAME_LABEL, "process_cpu"}, {"service_name", "search"}},
    {{PROFILE_NAME_LABEL, "off_cpu"}, {"service_name", "shop"}},
};

/* `series`: 0 to 2. `window`: counts 15 s from a fixed time. */
static inline struct push_profile push_fixture_profile(uint32_t series, uint32_t window, uint32_t chunk, uint64_t samples)
{
    uint64_t begin_ns = PUSH_FIXTURE_BEGIN_NS + window * 15 * NS_PER_S;

    return (struct push_profile){
        .window_begin_ns = begin_ns,
        .window_end_ns = begin_ns + 15 * NS_PER_S,
        .last_ns = begin_ns + 14 * NS_PER_S,
        .chunk = chunk,
        .samples = samples,
        .rows = samples,
        .labels = push_fixture_labels[series],
        .label_count = 2,
        .data = "pprof",
        .len_bytes = 5,
        .raw_len_bytes = 50,
    };
}

#endif
