/* SPDX-License-Identifier: Apache-2.0 */
/* Until the thread is joined nobody else touches the sampler, or libbpf. */
#include "capture/sampler/sampler_start.h"

#include <pthread.h>
#include <stdlib.h>

#include "capture/host/quiet_thread.h"

struct sampler_start {
    struct sampler_options options;
    pthread_t thread;
    struct sampler *sampler;
    struct error *error;
};

static void *run(void *ctx)
{
    struct sampler_start *start = ctx;

    start->error = sampler_open(&start->options, &start->sampler);
    return NULL;
}

struct error *sampler_start(const struct sampler_options *options, struct sampler_start **out)
{
    struct sampler_start *start = calloc(1, sizeof *start);

    if (!start)
        return error_no_memory();
    start->options = *options;
    int e = quiet_thread_start(&start->thread, run, start);
    if (e) {
        free(start);
        return error_os(e, "a thread that opens the sampler cannot be started");
    }
    *out = start;
    return NULL;
}

struct error *sampler_started(struct sampler_start *start, struct sampler **out)
{
    pthread_join(start->thread, NULL);
    struct error *err = start->error;
    if (!err)
        *out = start->sampler;
    free(start);
    return err;
}

void sampler_start_destroy(struct sampler_start *start)
{
    struct sampler *sampler = NULL;

    if (!start)
        return;
    error_destroy(sampler_started(start, &sampler));
    sampler_close(sampler);
}
