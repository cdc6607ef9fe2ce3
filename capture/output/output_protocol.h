/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two processes of a recording say to each other, over a socket pair.
 *
 * The reader reads other processes, and asks; the writer owns the files, and answers each request once. Names of files
 * are not in the requests: the writer knows them from the command line, from before there was anybody to distrust. It
 * checks everything else, because whoever has taken over the reader speaks to it.
 */
#ifndef CAPTURE_OUTPUT_OUTPUT_PROTOCOL_H
#define CAPTURE_OUTPUT_OUTPUT_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/trace/block.h"

enum output_request {
    OUTPUT_OPEN = 1,       /* begins the first or next trace file; answered with its path */
    OUTPUT_WRITE,          /* appends the payload to it; nothing, to learn how much room a pipe has */
    OUTPUT_SYNC,           /* has it stored on the disk */
    OUTPUT_CLOSE,          /* ends it, and removes files that --keep does not keep */
    OUTPUT_ARCHIVE_OPEN,   /* begins the archive */
    OUTPUT_ARCHIVE_WRITE,  /* appends the payload to it */
    OUTPUT_ARCHIVE_FINISH, /* the archive is whole */
    OUTPUT_STATUS,         /* replaces the file of figures by the payload */
    OUTPUT_REQUESTS        /* their number, and 1 */
};

/* Before the payload. */
struct output_request_header {
    uint32_t request;
    uint32_t len_bytes;
};

/* The longest payload: a block of a trace; and that of OUTPUT_STATUS. */
#define OUTPUT_PAYLOAD_MAX (TRACE_BLOCK_HEADER_BYTES + TRACE_BLOCK_LIMIT_BYTES)
#define OUTPUT_STATUS_MAX (1u << 16)

enum output_reply_kind {
    OUTPUT_DONE = 1,
    OUTPUT_FAILED,  /* with an error */
    OUTPUT_MOVING,  /* not the answer yet: somebody takes what is written, but slowly */
    OUTPUT_WAITING, /* not the answer yet: a pipe has no reader */
};

/* How much of a recording the reader of a pipe can be given now. */
enum output_room {
    OUTPUT_ROOM_FILE,       /* the output is a file, which is waited for */
    OUTPUT_ROOM_ALL,
    OUTPUT_ROOM_NO_SAMPLES, /* it is slow: everything but samples */
    OUTPUT_ROOM_NONE,       /* it is very slow, or has stopped */
};

/* What has been written and not been taken yet. {0} for a file. */
struct output_backlog {
    enum output_room room;
    uint64_t len_bytes;
};

/* Before two strings without NUL: a path, and the message of an error. */
struct output_reply_header {
    uint32_t kind;
    uint32_t code, os_errno; /* of an error */
    uint32_t path_len_bytes, message_len_bytes;
    uint32_t room;       /* enum output_room */
    uint64_t cpu_ns;     /* CPU time of the writer so far */
    uint64_t backlog_bytes;
};

/* The longest string. */
#define OUTPUT_TEXT_MAX 16384

struct output_reply {
    enum output_reply_kind kind;
    struct error *error; /* with OUTPUT_FAILED */
    char *path;          /* malloc'd; NULL: none came */
    uint64_t cpu_ns;
    struct output_backlog backlog;
};

/* Reads exactly so many bytes, however long they take; false: the other end has gone. */
bool output_read(int fd, void *to, size_t len_bytes);
/* Writes so many bytes; false: the other end has gone. */
bool output_write(int fd, const void *data, size_t len_bytes);
/*
 * Sends a reply. Takes `err`, which makes it OUTPUT_FAILED. `path` and `backlog` may be NULL. False: the other end has gone.
 */
bool output_reply_send(int fd, enum output_reply_kind kind, struct error *err, const char *path,
                       const struct output_backlog *backlog);
/* Receives a reply. False: the other end has gone, or is not to be understood. */
bool output_reply_receive(int fd, struct output_reply *out);
void output_reply_deinit(struct output_reply *r);

#endif
