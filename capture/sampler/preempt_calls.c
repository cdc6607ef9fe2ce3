/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function of the kernel is called by the number of its type (BTF). Where it is to be, the compiler has put an instruction that
 * loads a number which nothing else has (bpf/sampler_hit.h). A declaration of the function would have libbpf resolve it in all
 * kernels, also in those that lack it.
 */
#include "capture/sampler/preempt_calls.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/wire.h"

static const struct call {
    int32_t place; /* the number in its place */
    const char *name;
} calls[] = {{WIRE_CALL_PREEMPT_DISABLE, "bpf_preempt_disable"}, {WIRE_CALL_PREEMPT_ENABLE, "bpf_preempt_enable"}};
#define CALLS (sizeof calls / sizeof *calls)

/* Replaces what stands for the calls, each once at least. False: errno says why not. */
static bool put(struct bpf_program *program, const int ids[CALLS])
{
    size_t count = bpf_program__insn_cnt(program), found[CALLS] = {0};
    struct bpf_insn *insns = malloc(count * sizeof *insns);

    if (!insns)
        return false;
    memcpy(insns, bpf_program__insns(program), count * sizeof *insns);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < CALLS; k++) {
            if (insns[i].code != (BPF_ALU64 | BPF_MOV | BPF_K) || insns[i].imm != calls[k].place)
                continue;
            insns[i] = (struct bpf_insn){.code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_KFUNC_CALL, .imm = ids[k]};
            found[k]++;
        }
    }
    int e = found[0] && found[1] ? bpf_program__set_insns(program, insns, count) : -EINVAL;
    free(insns);
    errno = -e;
    return !e;
}

struct error *preempt_calls_put(struct bpf_object *obj, bool *preemptible)
{
    struct btf *btf = btf__load_vmlinux_btf();
    struct bpf_program *program;
    int ids[CALLS];

    if (!btf)
        return error_os(errno, "the kernel's types (BTF) cannot be read");
    /* The function by which those kernels run the programs. */
    *preemptible = btf__find_by_name_kind(btf, "trace_call_bpf_faultable", BTF_KIND_FUNC) > 0;
    for (size_t k = 0; k < CALLS; k++)
        ids[k] = btf__find_by_name_kind(btf, calls[k].name, BTF_KIND_FUNC);
    btf__free(btf);
    if (!*preemptible)
        return NULL;
    if (ids[0] <= 0 || ids[1] <= 0)
        return error_create(ERROR_UNSUPPORTED, "this kernel has no %s: tracepoints and memory-growth cannot be recorded", calls[ids[0] > 0].name);
    bpf_object__for_each_program(program, obj) {
        if (bpf_program__type(program) == BPF_PROG_TYPE_TRACEPOINT && !put(program, ids))
            return error_os(errno, "the sampler's program %s cannot be fitted to this kernel", bpf_program__name(program));
    }
    return NULL;
}
