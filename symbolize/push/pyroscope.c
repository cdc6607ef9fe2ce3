/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grafana Pyroscope, and what takes the same requests (Alloy, Grafana Cloud): the call push.v1.PusherService/Push of the
 * Connect protocol, whose body is one message of Protocol Buffers (api/push/v1/push.proto of Pyroscope 2.2). An error is
 * JSON: {"code": "invalid_argument", "message": "..."}.
 */
#include "formats/emit/protobuf.h"
#include "symbolize/push/store_kind.h"

#include <string.h>

/* Numbers of fields. */
enum {
    REQUEST_SERIES = 1,
    SERIES_LABELS = 1,
    SERIES_SAMPLES = 2,
    LABEL_NAME = 1,
    LABEL_VALUE = 2,
    SAMPLE_PROFILE = 1,
};

static void put_label(struct buf *series, struct buf *scratch, const struct profile_label *label)
{
    buf_clear(scratch);
    protobuf_put_bytes(scratch, LABEL_NAME, label->name, strlen(label->name));
    protobuf_put_bytes(scratch, LABEL_VALUE, label->value, strlen(label->value));
    protobuf_put_message(series, SERIES_LABELS, scratch);
}

static void put_body(const struct push_profile *profile, struct buf *out)
{
    struct buf series = {0}, scratch = {0};

    for (uint32_t i = 0; i < profile->label_count; i++)
        put_label(&series, &scratch, &profile->labels[i]);
    buf_clear(&scratch);
    protobuf_put_bytes(&scratch, SAMPLE_PROFILE, profile->data, profile->len_bytes);
    protobuf_put_message(&series, SERIES_SAMPLES, &scratch);
    protobuf_put_message(out, REQUEST_SERIES, &series);
    buf_deinit(&scratch);
    buf_deinit(&series);
}

/* pkg/validation/validate.go, pkg/distributor/distributor.go. A store that is older may say 500 where it means 400. */
static const struct store_text texts[] = {
    {"outside of ingestion window", STORE_REFUSED, STORE_REASON_OUTSIDE_WINDOW},
    {"exceeds the size limit", STORE_REFUSED, "too_large"},
    {"payload size exceeds limit", STORE_REFUSED, "too_large"},
    {"decompressed size exceeds", STORE_REFUSED, "too_large"},
    {"exceeds the samples count limit", STORE_REFUSED, "too_many_rows"},
    {"exceeds the sample labels limit", STORE_REFUSED, "bad_profile"},
    {"invalid utf8 string", STORE_REFUSED, "bad_profile"},
    {"invalid labels", STORE_REFUSED, "bad_labels"},
    {"label names; limit", STORE_REFUSED, "bad_labels"},
    {"label name too long", STORE_REFUSED, "bad_labels"},
    {"label value too long", STORE_REFUSED, "bad_labels"},
    {"duplicate label name", STORE_REFUSED, "bad_labels"},
    {"at least one label pair is required", STORE_REFUSED, "bad_labels"},
    {"Maximum active series limit exceeded", STORE_REFUSED, "series_limit"},
    /* Of a part behind it, such as one whose disk is full; another part may have stored the profile. */
    {"code = Unavailable", STORE_UNANSWERED, "unavailable"},
    {"push rate limit", STORE_LATER, "rate"},
    {"reached, next reset at", STORE_LATER, "quota"},
    {NULL},
};

const struct store_kind store_pyroscope = {
    .name = "pyroscope",
    .title = "Pyroscope",
    .path = "/push.v1.PusherService/Push",
    .content_type = "application/proto",
    .protocol_header = "Connect-Protocol-Version: 1",
    /*
     * Defaults of a tenant (pkg/validation/limits.go): 16,000 rows and 4 MiB a profile, but what is larger than the burst of
     * its rate, 2 MB, is answered with 429 for ever.
     */
    .max_rows = 15000,
    .max_raw_bytes = 3 << 19,
    .texts = texts,
    .put_body = put_body,
};
