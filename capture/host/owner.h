/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a process is, as far as limits are concerned: processes of one owner share what they may cost (quotas.h).
 *
 * That is its effective user, except where one party has many ids to use: all processes of a container count as one owner,
 * those of another user namespace for the user who made it, and those of a login session for the user who logged in, but for
 * root's. A container is told by its pid namespace, which only root of the host can have made; user namespaces made by root
 * stand for themselves. Ids from 65,536 on are given away in
 * blocks of as many (/etc/subuid, systemd-nspawn): each of them has an account, and so has the block.
 */
#ifndef CAPTURE_HOST_OWNER_H
#define CAPTURE_HOST_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/host/procfs.h"

/* What it follows from. Namespaces by their inode numbers, of those next below the host's; 0: it is in the host's. */
struct owner_facts {
    uint32_t uid;           /* effective, in the host's user namespace; PROCFS_UID_UNKNOWN */
    uint32_t container;     /* pid namespace, if its user namespace is the host's */
    uint32_t user_ns;
    uint32_t user_ns_owner; /* the user who made it */
    uint32_t login;         /* the user who logged in; 0: nobody did, or root, or it is not known */
};

/* Stands for the owner. Root's processes of the host have 0. */
uint64_t owner_key(const struct owner_facts *facts);
/* The owner of all processes of which nothing is known. */
uint64_t owner_unknown(void);
/* Stands for the block of ids that the owner is in; 0: it is in none. */
uint64_t owner_block(uint64_t owner);
/* A number below `count` that stands for the owner, or for its block; others may have the same one. */
uint32_t owner_number(uint64_t owner, uint32_t count);
/* Whether it is root of the host, whose children may become anybody. */
bool owner_is_root(uint64_t owner);

/* pycap's own namespaces, which are taken for the host's. */
struct owner_host {
    uint32_t user, pid;
};
void owner_host_read(struct owner_host *out);
/* Reads from /proc what there is beside the user. Namespaces that cannot be read are taken for the host's. */
void owner_read(const struct owner_host *host, pid_t pid, struct owner_facts *facts);

#endif
