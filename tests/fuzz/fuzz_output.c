/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader that was taken over may say to the process that writes: it answers or ends, and opens nothing else. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture/output/output_protocol.h"
#include "capture/output/output_server.h"

/* Takes the answers, of which there may be more than a socket holds. */
static void *listen_to(void *socket)
{
    char bytes[4096];

    while (read(*(int *)socket, bytes, sizeof bytes) > 0) {
    }
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    const struct output_options o = {.files = {.pattern = "/dev/null", .hostname = "h"}, .archive = "/dev/null"};
    pthread_t listener;
    int ends[2];

    signal(SIGPIPE, SIG_IGN);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) || !output_write(ends[0], data, len_bytes) ||
        shutdown(ends[0], SHUT_WR) || pthread_create(&listener, NULL, listen_to, &ends[0]))
        abort();
    output_server_run(ends[1], &o);
    close(ends[1]);
    pthread_join(listener, NULL);
    close(ends[0]);
    return 0;
}
