/* SPDX-License-Identifier: Apache-2.0 */
/* What a capture may cost: it is looked at once a second, what can be forgotten is, and the rate follows. */
#include <inttypes.h>
#include <malloc.h>
#include <unistd.h>

#include "capture/session/session_state.h"

/* Kept of code objects; a large host's programs have some 15 MiB. */
#define CODES_MAX_BYTES (UINT64_C(32) << 20)
/* How often what is known is forgotten for the sake of memory while the limit is near: it has to be met again. */
#define FORGET_NS (10 * SECOND)

struct budget_use capture_use(const struct record *r, uint64_t time_ns)
{
    struct timespec cpu;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (struct budget_use){
        .time_ns = time_ns,
        .cpu_ns = (uint64_t)cpu.tv_sec * SECOND + (uint64_t)cpu.tv_nsec +
                  (r->sampler ? sampler_cpu_ns(r->sampler) : 0),
        .lost = r->losses[LOSS_ring_full],
        .bytes = capture_bytes(r),
        .memory = r->held_bytes,
    };
}

/* From here on the limit is near. */
static uint64_t near_limit(const struct record *r)
{
    return r->o->max_memory - r->o->max_memory / 8;
}

struct error *capture_check_memory(const struct record *r)
{
    if (!r->o->max_memory)
        return NULL;
    uint64_t held = procfs_own_resident(), least = held + held / 2;
    if (least <= r->o->max_memory)
        return NULL;
    return error_create(ERROR_USAGE,
                        "--max-memory: pycap holds %" PRIu64 " MiB before the first sample, so allow %" PRIu64
                        " MiB at least (a smaller --ring-size and --unwind-memory take less)",
                        held >> 20, (least >> 20) + 1);
}

static struct error *forget_codes(struct record *r)
{
    if (r->sampler) {
        /* What is sampled from now on brings its code objects again; what was before refers to those that are known. */
        sampler_forget_codes(r->sampler);
        uint64_t until_ns = now_ns();
        nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
        TRY(capture_drain(r, until_ns));
    }
    processes_forget_codes(r->processes);
    codes_clear(r->codes);
    return NULL;
}

struct error *capture_limit_memory(struct record *r, uint64_t time_ns)
{
    if (r->o->max_memory) {
        r->held_bytes = procfs_own_resident();
        if (r->held_bytes > r->o->max_memory ||
            (r->held_bytes > near_limit(r) && time_ns - r->forgotten_ns >= FORGET_NS)) {
            r->forgotten_ns = time_ns;
            TRY(forget_codes(r));
            if (trace_writer_epoch_fits(r->writer))
                TRY(recorder_begin_epoch(r->recorder, time_ns));
            malloc_trim(0);
            r->held_bytes = procfs_own_resident();
            return NULL;
        }
    }
    /* Programs may make code for ever: what is kept of it has a limit, and is met again where it is still in use. */
    return codes_bytes(r->codes) + processes_codes_bytes(r->processes) < CODES_MAX_BYTES ? NULL : forget_codes(r);
}

struct error *capture_keep_budget(struct record *r, uint64_t time_ns)
{
    struct budget_use use = capture_use(r, time_ns);
    enum budget_reason reason = budget_step(&r->budget, &use);

    if (reason == BUDGET_UNCHANGED)
        return NULL;
    if (reason == BUDGET_END) {
        r->stop = true;
        r->reason = END_FULL;
        return NULL;
    }
    if (r->proc)
        proc_sampler_set_rate(r->proc, r->budget.frequency_hz);
    else
        TRY(sampler_set_rate(r->sampler, r->budget.frequency_hz));
    recorder_period(r->recorder, time_ns, capture_event(r).period, budget_reason_text(reason));
    if (!r->o->quiet)
        fprintf(r->o->messages, "%spycap: %" PRIu64 " Hz from here on: %s\n", isatty(fileno(r->o->messages)) ? "\r\033[K" : "",
                r->budget.frequency_hz, budget_reason_text(reason));
    return NULL;
}
