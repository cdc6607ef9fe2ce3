/* SPDX-License-Identifier: Apache-2.0 */
/* Orders and descriptors travel as those of errands do. */
#include "capture/sampler/table_maker.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/wire.h"
#include "capture/host/errand_server.h"
#include "capture/host/host.h"
#include "capture/host/privileges.h"
#include "capture/host/sandbox.h"
#include "formats/base/helper_process.h"

/* Who records waits no longer than this. */
#define ANSWER_S 1

struct table_maker {
    pid_t pid;
    int socket;
    uint32_t max;
};

/* A chunk, as the map of chunks wants it. libbpf would try first what the kernel can, for which it loads programs. */
static int make_chunk(void)
{
    union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY,
                           .key_size = sizeof(uint32_t),
                           .value_size = WIRE_CHUNK_BYTES,
                           .max_entries = 1,
                           .map_flags = BPF_F_MMAPABLE,
                           .map_name = "table_chunk"};
    int fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);

    return helper_descriptor(fd);
}

static _Noreturn void serve(int socket, uint32_t max, bool confine)
{
    struct errand_order o;
    int none;

    helper_begin("pycap-tables", &socket, 1);
    host_lift_memlock();
    if (confine) {
        privileges_drop_to_make_maps();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        if (sandbox_enter_table_maker())
            _exit(1);
#endif
    }
    while (errand_order_receive(socket, &o, &none)) {
        int chunk = max ? make_chunk() : -1;
        max -= max > 0;
        bool told = errand_order_send(socket, &(struct errand_order){.kind = ERRAND_ORDER_DONE}, chunk);
        if (chunk >= 0)
            close(chunk);
        if (none >= 0)
            close(none);
        if (!told)
            break;
    }
    _exit(0);
}

struct error *table_maker_create(uint32_t max, bool confine, struct table_maker **out)
{
    struct table_maker *m = calloc(1, sizeof *m);
    int ends[2];

    if (!m)
        return error_no_memory();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
        free(m);
        return error_os(errno, "a socket to the process that makes room for unwind tables cannot be made");
    }
    for (int i = 0; i < 2; i++)
        ends[i] = helper_descriptor(ends[i]);
    m->max = max;
    m->socket = ends[0];
    m->pid = fork();
    if (!m->pid)
        serve(ends[1], max, confine);
    int why = errno;
    close(ends[1]);
    setsockopt(m->socket, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = ANSWER_S}, sizeof(struct timeval));
    if (m->pid < 0) {
        close(ends[0]);
        free(m);
        return error_os(why, "the process that makes room for unwind tables cannot be started");
    }
    *out = m;
    return NULL;
}

void table_maker_destroy(struct table_maker *m)
{
    if (!m)
        return;
    if (m->socket >= 0)
        close(m->socket);
    helper_wait(m->pid);
    free(m);
}

int table_maker_make(struct table_maker *m)
{
    struct errand_order o = {.kind = ERRAND_ORDER_START};
    int chunk;

    if (m->socket < 0)
        return -1;
    if (!errand_order_send(m->socket, &o, -1) || !errand_order_receive(m->socket, &o, &chunk)) {
        /* It is gone, or stopped, or waits for memory. An answer that comes late would be taken for the next one. */
        close(m->socket);
        m->socket = -1;
        return -1;
    }
    return helper_descriptor(chunk);
}

uint32_t table_maker_max(const struct table_maker *m)
{
    return m->max;
}
