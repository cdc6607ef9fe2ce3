/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What on this host keeps pycap from processes and system calls though it has the capabilities: /proc mounted so that it
 * hides processes (hidepid), a security module, a seccomp filter, the rule of Yama.
 */
#ifndef CAPTURE_HOST_RESTRAINTS_H
#define CAPTURE_HOST_RESTRAINTS_H

#include <stdbool.h>
#include <stddef.h>

#define RESTRAINTS_HIDEPID_MAX 16
#define RESTRAINTS_TEXT_MAX 256

/*
 * Stores how /proc hides processes from those who may not read them, as mount shows it ("2", "invisible"), or "", by a text
 * as /proc/self/mountinfo has it. Returns whether members of the group `*group` see all of them all the same.
 */
bool restraints_hidepid_in(const char *mountinfo, char hidepid[RESTRAINTS_HIDEPID_MAX], unsigned *group);
/* Stores the same for this process: "" where it sees all processes by its groups. */
void restraints_hidepid(char hidepid[RESTRAINTS_HIDEPID_MAX]);
/*
 * Stores who confines a process whose /proc/PID/attr/current is `label`, such as "the AppArmor profile 'docker-default'" or
 * "the SELinux domain 'container_t'"; "" where nobody does.
 */
void restraints_module_of(const char *label, char out[RESTRAINTS_TEXT_MAX]);
/* Stores the same for this process. */
void restraints_module(char out[RESTRAINTS_TEXT_MAX]);
/* Whether system calls of this process are filtered (seccomp). */
bool restraints_seccomp(void);
/* Stores who may have refused a system call that the capabilities allow: "a seccomp filter, as containers have, forbids it". */
void restraints_suspects(char out[RESTRAINTS_TEXT_MAX]);
/* kernel.yama.ptrace_scope; 0 where the kernel has no Yama. */
int restraints_ptrace_scope(void);

#endif
