/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parca, and Polar Signals Cloud: ProfileStoreService/WriteRaw as its gateway takes it in JSON, with the profile in base64
 * (proto/parca/profilestore/v1alpha1/profilestore.proto of Parca 0.28). An error is JSON: {"code": 3, "message": "...",
 * "details": []}, where the code is one of gRPC.
 */
#include "formats/base/base64.h"
#include "formats/emit/json.h"
#include "symbolize/push/store_kind.h"

static void put_base64(const void *data, size_t len_bytes, struct buf *out)
{
    uint8_t *to = buf_reserve(out, BASE64_CHARS(len_bytes));

    if (to)
        out->len_bytes += base64_encode(data, len_bytes, (char *)to);
}

/* "normalized": addresses are those of the binary's own headers, as our pprof has them, not those of a process. */
static void put_body(const struct push_profile *profile, struct buf *out)
{
    buf_put_str(out, "{\"normalized\":true,\"series\":[{\"labels\":{\"labels\":[");
    for (uint32_t i = 0; i < profile->label_count; i++) {
        buf_put_str(out, i ? ",{\"name\":" : "{\"name\":");
        json_put_foreign(profile->labels[i].name, out);
        buf_put_str(out, ",\"value\":");
        json_put_foreign(profile->labels[i].value, out);
        buf_put_str(out, "}");
    }
    buf_put_str(out, "]},\"samples\":[{\"raw_profile\":\"");
    put_base64(profile->data, profile->len_bytes, out);
    buf_put_str(out, "\"}]}]}");
}

/* pkg/normalizer/normalizer.go, pkg/profilestore/profilecolumnstore.go: some that name no code become 500. */
static const struct store_text texts[] = {
    {"invalid label name", STORE_REFUSED, "bad_labels"},
    {"duplicate label name", STORE_REFUSED, "bad_labels"},
    {"missing __name__ label", STORE_REFUSED, "bad_labels"},
    {"invalid profile type", STORE_REFUSED, "bad_labels"},
    {"message larger than max", STORE_REFUSED, "too_large"},
    {"invalid profile: ", STORE_REFUSED, "bad_profile"},
    {"failed to parse profile", STORE_REFUSED, "bad_profile"},
    {"decompressing profile", STORE_REFUSED, "bad_profile"},
    {NULL},
};

const struct store_kind store_parca = {
    .name = "parca",
    .title = "Parca",
    .path = "/api/profiles/writeraw",
    .content_type = "application/json",
    /* A request may have 64 MiB, but has to come whole within 5 seconds, over slow lines too. */
    .max_rows = 100000,
    .max_raw_bytes = 4 << 20,
    .texts = texts,
    .put_body = put_body,
};
