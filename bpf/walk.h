/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How a walk reads the memory of a process. The walks are one piece of code for the BPF
 * program and for the host (the backend without BPF, pysym, and tests over recorded
 * address spaces); what differs between the two is here.
 */
#ifndef BPF_WALK_H
#define BPF_WALK_H

#include "bpf/wire.h"

#ifdef __bpf__
#include "bpf/stages.h"

enum loss_reason {
#define LOSS(number, name, class, meaning) LOSS_##name = number,
#include "formats/trace/losses.def"
#undef LOSS
};
#define WALK_INLINE static __attribute__((always_inline)) inline
/* Bounds an offset into a buffer of `mask` + 1 bytes: by an instruction that the compiler keeps and the verifier sees. */
#define WALK_BOUND(offset, mask) asm volatile("%0 &= %1" : "+r"(offset) : "i"(mask))
#define WALK_READ(walk, out, len_bytes, address) \
    (stage_read(len_bytes), bpf_probe_read_user((out), (len_bytes), (const void *)(address)))
#else
#include <string.h>

#include "formats/trace/trace.h"
#define WALK_INLINE static inline
#define WALK_BOUND(offset, mask) ((offset) &= (mask))
/* Reads another process's memory, or a recording of it; 0 when all of it could be read. */
struct walk_memory {
    int (*read)(void *ctx, void *out, uint32_t len_bytes, uint64_t address);
    void *ctx;
};
#define WALK_READ(walk, out, len_bytes, address) \
    (walk)->memory.read((walk)->memory.ctx, (out), (uint32_t)(len_bytes), (address))
#endif

/* What is in memory stays there: in a loop the verifier of the kernel would follow the value of a register. */
#define WALK_FORGET() asm volatile("" ::: "memory")
/* Before a short loop: 5.10 refuses some loops for how the compiler lays them out. */
#ifdef __bpf__
#define WALK_UNROLL _Pragma("unroll")
/*
 * Before a loop that calls a global function. The verifier follows every path of calls from the program on, however deep, and
 * for that goes through a function as often as calls of it are written down.
 */
#define WALK_ROLL _Pragma("clang loop unroll(disable)")
#else
#define WALK_UNROLL
#define WALK_ROLL
#endif

/* A stack starts no further than this above its pointer. */
#define WALK_NATIVE_STACK_BYTES (64ull << 20)

/*
 * Eight bytes, wherever they lie. clang makes eight loads and as many shifts of a copy from what it does not know to be
 * aligned; the machine does it in one.
 */
#ifdef __bpf__
typedef PY_U64 __attribute__((may_alias)) walk_word;
#define WALK_LOAD(value, from) ((value) = *(const walk_word *)(from))
#else
#define WALK_LOAD(value, from) memcpy(&(value), (from), sizeof(value))
#endif

/* The value at an offset that is not constant. Buffers have 8 bytes more than the mask says. */
#define WALK_U64(buffer, offset, mask)     \
    ({                                     \
        PY_U64 at_ = (offset), value_;     \
        WALK_BOUND(at_, mask);             \
        WALK_LOAD(value_, (buffer) + at_); \
        value_;                            \
    })
#define WALK_U32(buffer, offset, mask) ((PY_U32)WALK_U64(buffer, offset, mask))

#endif
