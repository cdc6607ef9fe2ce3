/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The machine whose processes are looked at, as names ARCH_*: the target of a BPF program, else the host. A file that
 * unwinds stacks of one machine on any host includes that machine's header before this one.
 */
#ifndef BPF_ARCH_H
#define BPF_ARCH_H

#if defined(BPF_ARCH_X86_64_H) || defined(__TARGET_ARCH_x86) || (!defined(__bpf__) && defined(__x86_64__))
#include "bpf/arch_x86_64.h"
#else
#error "bpf/ knows x86-64 only: another machine needs a header like bpf/arch_x86_64.h"
#endif

#endif
