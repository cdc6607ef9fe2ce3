/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that run errands (errand.h). The server does nothing but fork helpers and kill them, so it is never held up.
 * A helper runs one errand after the other, in a place of the shared memory that is its own: what a late one writes there
 * disturbs nobody. Its socket closes when it has gone.
 */
#ifndef CAPTURE_HOST_ERRAND_SERVER_H
#define CAPTURE_HOST_ERRAND_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most that one errand may take and give. */
#define ERRAND_BYTES ((size_t)1 << 20)

/* So many helpers there are at most. */
#define ERRAND_HELPERS 24

/*
 * What is done: with `bytes`, in which both arguments and results are, and which has no pointers into other memory; and with a
 * descriptor. It gets in *fd one that is closed for it, or -1, and may put one there that the caller shall have.
 */
typedef void (*errand_fn)(void *bytes, size_t size, int *fd);

/*
 * What the sockets carry, with or without a descriptor. The server answers START with the helper's process in `size`, and
 * its socket; a helper answers RUN.
 */
struct errand_order {
    enum { ERRAND_ORDER_START, ERRAND_ORDER_KILL, ERRAND_ORDER_RUN, ERRAND_ORDER_DONE } kind;
    uint32_t helper;
    errand_fn run;
    size_t size;
};
/* `fd` -1: none goes with it. False: the other side has gone. */
bool errand_order_send(int socket, const struct errand_order *o, int fd);
/* *fd is -1 when none came. */
bool errand_order_receive(int socket, struct errand_order *o, int *fd);

/* Memory that a helper shares with who asks. */
struct errand_place {
    atomic_bool begun; /* with the errand */
    _Atomic uint64_t cpu_ns; /* that errands here have taken */
    _Alignas(64) char bytes[ERRAND_BYTES];
};

/* What errand_begin() forks; `places` are ERRAND_HELPERS. */
_Noreturn void errand_serve(int socket, struct errand_place *places, void (*begin)(void), bool confine);

#endif
