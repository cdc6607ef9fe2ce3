/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What grows memory: system calls that give a process private memory it can write to.
 *
 * The kernel calls `grew` at the end of mmap, munmap, mremap, brk and mprotect, in the thread that made the call. What a new
 * mapping gives is known by its arguments. What the others give depends on what was there: the kernel counts it
 * (mm->data_vm, VmData in /proc/PID/status), so the count is kept when the call begins (`grows`), and the change since then
 * is this call's, within what its arguments allow. Where another thread's call ends meanwhile, either may be given some of
 * what the other gave, or both may, but no more than their own arguments allow; no later call is affected. Not residency is
 * counted but mappings, so sizes of pages do not matter.
 *
 * A sample has the stack of a call that gave memory, and user space is told what is given back (struct wire_unmap): what was
 * so soon after it was taken is no growth (capture/session/growth.h). While a process has samples of the last moments there
 * are such messages.
 *
 * A program may map and unmap as fast as it can. When a process has had many samples in a second, its call sites (where the
 * newest frames of Python are) account for themselves: the more samples a site has had, the more bytes it takes for the
 * next. So where much comes and goes, the rest of the program is still seen.
 */
#ifndef BPF_SAMPLER_GROWTH_H
#define BPF_SAMPLER_GROWTH_H

#include "bpf/kernel.h"

#include "bpf/sampler_hit.h"
#include "bpf/sampler_room.h"
#include "bpf/sampler_site.h"
#include "bpf/sampler_take.h"

volatile __u32 growth_enabled = 0;
const volatile __u32 growth_event = 0; /* index of the event */

/* Samples of a process in a second (2^30 ns) before its call sites account for themselves, and the most of all. */
#define GROWTH_STACKS 256
#define GROWTH_STACKS_MAX 4096
/* Samples of a site in a second after which it takes twice as many bytes for the next; and again after as many. */
#define GROWTH_SITE_SHIFT 4
#define GROWTH_DOUBLINGS_MAX 32
#define GROWTH_SECOND(time_ns) ((__u32)((time_ns) >> 30))

/* What a process has been given. Threads of it change it at once: sums are added to, nothing else is relied on. */
struct process_growth {
    __u64 start_boottime_ns, exec_generation; /* of its program, as in struct wire_process */
    __s64 rest_bytes;     /* for which there is no sample yet */
    __u64 young_until_ns; /* user space may want to know what is given back until then */
    __u32 second, stacks; /* samples in that second */
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1); /* user space sets it */
    __type(key, __u32);
    __type(value, struct process_growth);
} growths SEC(".maps");

struct growth_site {
    __u64 rest_bytes, due_bytes; /* for which there is no sample yet, and how many it takes; 0: not drawn */
    __u32 second, stacks;
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1); /* user space sets it */
    __type(key, __u64);
    __type(value, struct growth_site);
} growth_sites SEC(".maps");

/* The Python state of a thread as its last sample found it. */
struct growth_thread {
    __u64 tstate, exec_generation;
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1); /* user space sets it */
    __type(key, __u32);
    __type(value, struct growth_thread);
} growth_threads SEC(".maps");

/* What the kernel counts of a process. */
struct growth_memory {
    __u64 data_bytes; /* private memory that can be written to */
    __u64 brk;        /* the end of its heap */
};

/* What a thread's process had when the system call began that the thread is in. */
struct growth_before {
    __u64 exec_generation;
    struct growth_memory memory;
    int system_call; /* -1: none */
    int reserved;
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH); /* threads that are killed leave theirs */
    __uint(max_entries, 1);              /* user space sets it */
    __type(key, __u32);
    __type(value, struct growth_before);
} growths_before SEC(".maps");

/* The arguments of the tracepoints (syscalls/sys_enter_* and sys_exit_* in tracefs: the same on all kernels). */
struct growth_entry {
    __u64 common;
    int system_call;
    int reserved;
    __u64 arguments[4]; /* of a call that has as many */
};
struct growth_exit {
    __u64 common;
    int system_call;
    int reserved;
    __s64 result;
};

/* What a call did. Addresses and lengths in bytes; lengths 0: nothing. */
struct growth_change {
    __s64 more_bytes;                 /* private memory that can be written to; 0 or less: it gave none */
    __u64 start;                      /* where it gave that */
    __u64 gone_start, gone_len_bytes; /* what it took away, or moved */
    __u64 moved_to, kept_len_bytes;   /* moved_to 0: it was not moved; else so much of it was */
};

static __always_inline __u64 whole_pages(__u64 bytes)
{
    return (bytes + ARCH_PAGE_BYTES - 1) & ~(ARCH_PAGE_BYTES - 1ull);
}

static __always_inline __s64 clamp_bytes(__s64 bytes, __s64 least, __s64 most)
{
    return bytes < least ? least : bytes > most ? most : bytes;
}

static __always_inline void memory_read(struct mm_struct *mm, struct growth_memory *out)
{
    out->data_bytes = BPF_CORE_READ(mm, data_vm) * ARCH_PAGE_BYTES;
    out->brk = BPF_CORE_READ(mm, brk);
}

/* ---- what a call did; `change_bytes` is by how much the kernel's count changed since it began ---- */

/* Whether that has to be known: what the others do, their arguments say. */
static __always_inline int needs_before(const struct arch_call *c)
{
    return c->system_call == ARCH_CALL_MMAP ? !!(c->arguments[3] & ARCH_MAP_FIXED) : c->system_call != ARCH_CALL_MUNMAP;
}

static __always_inline void change_mmap(const struct arch_call *c, __u64 start, __s64 change_bytes, struct growth_change *out)
{
    __u64 len = whole_pages(c->arguments[1]);
    int given = (c->arguments[3] & ARCH_MAP_TYPE) == ARCH_MAP_PRIVATE && c->arguments[2] & ARCH_PROT_WRITE;

    out->start = start;
    if (!(c->arguments[3] & ARCH_MAP_FIXED)) {
        out->more_bytes = given ? len : 0;
        return;
    }
    out->more_bytes = clamp_bytes(change_bytes, -(__s64)len, given ? len : 0);
    if (!given) {
        out->gone_start = start;
        out->gone_len_bytes = len;
    }
}

static __always_inline void change_mprotect(const struct arch_call *c, __s64 change_bytes, struct growth_change *out)
{
    __u64 len = whole_pages(c->arguments[1]);

    out->start = c->arguments[0];
    if (c->arguments[2] & ARCH_PROT_WRITE) {
        out->more_bytes = clamp_bytes(change_bytes, 0, len);
    } else {
        out->gone_start = c->arguments[0];
        out->gone_len_bytes = len;
    }
}

static __always_inline void change_brk(__u64 from, __u64 to, struct growth_change *out)
{
    from = whole_pages(from);
    to = whole_pages(to);
    out->more_bytes = to - from;
    out->start = from;
    if (to < from) {
        out->gone_start = to;
        out->gone_len_bytes = from - to;
    }
}

static __always_inline void change_mremap(const struct arch_call *c, __u64 start, __s64 change_bytes,
                                          struct growth_change *out)
{
    __u64 from = c->arguments[0], len_from = whole_pages(c->arguments[1]), len = whole_pages(c->arguments[2]);
    __s64 more = c->arguments[3] & ARCH_MREMAP_DONTUNMAP ? (__s64)len : (__s64)(len - len_from);

    out->more_bytes = clamp_bytes(change_bytes, 0, more > 0 ? more : 0);
    out->start = c->arguments[3] & ARCH_MREMAP_DONTUNMAP ? start : start + len_from;
    if (c->arguments[3] & ARCH_MREMAP_DONTUNMAP)
        return;
    if (start != from) {
        out->gone_start = from;
        out->gone_len_bytes = len_from;
        out->moved_to = start;
        out->kept_len_bytes = len < len_from ? len : len_from;
    } else if (len < len_from) {
        out->gone_start = from + len;
        out->gone_len_bytes = len_from - len;
    }
}

/* What the call did that has just ended, with `result`; `before` may be NULL where that need not be known. */
static __noinline int growth_account(const struct growth_before *before, const struct arch_call *c, __u64 result,
                                     struct growth_change *out)
{
    struct growth_memory now;
    __s64 change = 0;

    if (before) {
        memory_read((struct mm_struct *)BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), mm), &now);
        change = now.data_bytes - before->memory.data_bytes;
    }
    switch (c->system_call) {
    case ARCH_CALL_MMAP:
        change_mmap(c, result, change, out);
        break;
    case ARCH_CALL_MPROTECT:
        change_mprotect(c, change, out);
        break;
    case ARCH_CALL_MUNMAP:
        out->gone_start = c->arguments[0];
        out->gone_len_bytes = whole_pages(c->arguments[1]);
        break;
    case ARCH_CALL_MREMAP:
        change_mremap(c, result, change, out);
        break;
    case ARCH_CALL_BRK:
        if (before)
            change_brk(before->memory.brk, result, out);
        break;
    }
    return 0;
}

/* The state of the running process; it begins with nothing. NULL: there is no room for it, which is counted. */
static __noinline struct process_growth *growth_of(__u32 tgid, const struct task_facts *facts)
{
    struct process_growth *g = bpf_map_lookup_elem(&growths, &tgid);
    struct process_growth fresh = {.start_boottime_ns = facts->start_boottime_ns, .exec_generation = facts->exec_generation};

    if (g && g->start_boottime_ns == facts->start_boottime_ns && g->exec_generation == facts->exec_generation)
        return g;
    if (!bpf_map_update_elem(&growths, &tgid, &fresh, BPF_ANY))
        g = bpf_map_lookup_elem(&growths, &tgid);
    else
        g = 0;
    if (!g)
        count_loss(LOSS_growth_untracked);
    return g;
}

/* What the process of the running thread had when the call began; NULL: it began before the process was recorded. */
static __noinline struct growth_before *growth_taken_before(__u32 tid, const struct task_facts *facts, int system_call)
{
    struct growth_before *before = bpf_map_lookup_elem(&growths_before, &tid);

    if (!before || before->system_call != system_call || before->exec_generation != facts->exec_generation)
        return 0;
    before->system_call = -1;
    return before;
}

/* ---- which calls have a sample ---- */

static __noinline __u64 growth_site_key(struct scratch *s, const struct wire_process *process)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tid = id;
    struct growth_thread *t = bpf_map_lookup_elem(&growth_threads, &tid);
    __u64 python = process && t && t->exec_generation == s->facts.exec_generation ? python_site(process, t->tstate, 0) : 0;

    return (python ? python : native_site(&s->regs)) ^ (id >> 32) * WAIT_MIX;
}

static __always_inline void growth_remember(struct scratch *s, __u32 tid)
{
    struct growth_thread t = {.tstate = s->walk.result.tstate, .exec_generation = s->facts.exec_generation};

    if (s->sample.thread_handle)
        bpf_map_update_elem(&growth_threads, &tid, &t, BPF_ANY);
}

/* How many bytes a sample of a site takes that has had `stacks` in this second: twice `period` at most, or half of that. */
static __always_inline __u64 site_due_bytes(__u64 period, __u32 stacks)
{
    __u32 doublings = stacks >> GROWTH_SITE_SHIFT;
    __u64 bytes = period;

    if (!doublings)
        return period;
    bytes <<= doublings > GROWTH_DOUBLINGS_MAX ? GROWTH_DOUBLINGS_MAX : doublings;
    /* Where mappings come and go in a rhythm, a fixed number would always meet the same. */
    return bytes / 2 + bytes / 1024 * (bpf_get_prandom_u32() & 1023);
}

/* The site takes `bytes` up; returns what a sample of this call stands for, 0: it has none. */
static __noinline __u64 site_take(struct scratch *s, const struct wire_process *process, __u64 bytes, __u64 now_ns)
{
    __u64 key = growth_site_key(s, process);
    __u64 period = sample_periods[growth_event & (WIRE_EVENT_MAX - 1)];
    struct growth_site *site = bpf_map_lookup_elem(&growth_sites, &key);

    if (!site) {
        struct growth_site fresh = {.second = GROWTH_SECOND(now_ns)};
        bpf_map_update_elem(&growth_sites, &key, &fresh, BPF_ANY);
        site = bpf_map_lookup_elem(&growth_sites, &key);
        if (!site)
            return 0;
    }
    if (site->second != GROWTH_SECOND(now_ns)) {
        site->second = GROWTH_SECOND(now_ns);
        site->stacks = 0;
        site->due_bytes = 0;
    }
    if (!site->due_bytes)
        site->due_bytes = site_due_bytes(period, site->stacks);
    site->rest_bytes += bytes;
    if (site->rest_bytes < site->due_bytes)
        return 0;
    bytes = site->rest_bytes;
    site->rest_bytes = site->due_bytes = 0;
    site->stacks++;
    return bytes;
}

/* The process takes `bytes` up, which are less than a period; returns what a sample of this call stands for, 0: it has none. */
static __always_inline __u64 rest_take(struct process_growth *g, __u64 bytes, __u64 period)
{
    __sync_fetch_and_add(&g->rest_bytes, bytes);
    __s64 rest = *(volatile __s64 *)&g->rest_bytes;
    if (rest < (__s64)period)
        return 0;
    __sync_fetch_and_add(&g->rest_bytes, -rest);
    return rest;
}

/*
 * Returns the weight of a sample for a call that gave `bytes`; 0: take no sample, the bytes go to the next one. A call
 * that gave a period or more stands for itself alone: whether it counts as growth is found out of it alone.
 */
static __noinline __u64 growth_take(struct scratch *s, struct process_growth *g, const struct wire_process *process, __u64 bytes,
                                    __u64 now_ns)
{
    __u64 period = sample_periods[growth_event & (WIRE_EVENT_MAX - 1)];

    if (g->second != GROWTH_SECOND(now_ns)) {
        g->second = GROWTH_SECOND(now_ns);
        g->stacks = 0;
    }
    if (g->stacks >= GROWTH_STACKS_MAX)
        return 0;
    if (g->stacks >= GROWTH_STACKS)
        return site_take(s, process, bytes, now_ns);
    return bytes < period ? rest_take(g, bytes, period) : bytes;
}

/* ---- a call ---- */

/* Tells user space what is gone, as long as that may be of what it has been sent. */
static __always_inline void growth_tell(struct process_growth *g, struct wire_process *process,
                                        const struct growth_change *change, __u64 now_ns)
{
    struct wire_unmap message = {.type = WIRE_UNMAP, .tgid = bpf_get_current_pid_tgid() >> 32, .time_ns = now_ns,
                                 .start = change->gone_start, .len_bytes = change->gone_len_bytes,
                                 .moved_to = change->moved_to, .kept_len_bytes = change->kept_len_bytes};

    if (!change->gone_len_bytes || now_ns >= g->young_until_ns)
        return;
    if ((process && room_for(process) != RING_ROOM) || ring_send(&message, sizeof message))
        count_losses(LOSS_growth_unsettled, message.len_bytes);
    else if (process)
        room_taken(process, sizeof message);
}

/* Accounts for the call, and fills in the sample's head if it has one. Returns what came of it; not SAMPLED: it has none. */
static __noinline enum wire_event_stat growth_begin(struct scratch *s, struct wire_process *process, __u64 result, __u64 now_ns)
{
    struct growth_change change = {0};
    struct arch_call call;

    if (registers_of_task(s))
        return WIRE_EVENT_IDLE;
    __u64 id = bpf_get_current_pid_tgid();
    struct process_growth *g = growth_of(id >> 32, &s->facts);
    if (!g)
        return WIRE_EVENT_IDLE;
    arch_call_of(&s->regs, &call);
    struct growth_before *before = needs_before(&call) ? growth_taken_before(id, &s->facts, call.system_call) : 0;
    growth_account(before, &call, result, &change);
    growth_tell(g, process, &change, now_ns);
    if (change.more_bytes <= 0)
        return WIRE_EVENT_IDLE;
    count_time(WIRE_STAT_GROWN_BYTES, change.more_bytes);
    __u64 bytes = growth_take(s, g, process, change.more_bytes, now_ns);
    if (!bytes)
        return WIRE_EVENT_THINNED;
    g->stacks++;
    g->young_until_ns = now_ns + WIRE_YOUNG_NS;
    s->sample.period = bytes;
    s->sample.grown_start = change.start;
    s->sample.grown_bytes = change.more_bytes;
    s->sample.system_call = call.system_call;
    return WIRE_EVENT_SAMPLED;
}

/* Takes the stack of a call that gave memory. What the sample stands for is in its head already. */
static __always_inline enum wire_event_stat growth_sample(struct scratch *s, struct wire_process *process, __u64 now_ns)
{
    struct wire_sample *m = &s->sample;
    __u64 bytes = m->period, start = m->grown_start, grown_bytes = m->grown_bytes;
    int system_call = m->system_call;

    if (process && room_for(process) != RING_ROOM) {
        count_losses(LOSS_growth_unsent, bytes);
        return WIRE_EVENT_REFUSED; /* the clock still has room: no reason to slow down */
    }
    sample_begin(m, process, &s->facts, growth_event, now_ns);
    m->period = bytes;
    m->grown_start = start;
    m->grown_bytes = grown_bytes;
    m->system_call = system_call;
    __u64 sent = take_stacks(s, 0, 0, process); /* the kernel's frames are those of the way out */
    growth_remember(s, m->tid);
    if (!sent) {
        count_losses(LOSS_growth_unsent, bytes);
        return WIRE_EVENT_RING_FULL;
    }
    if (process)
        room_taken(process, sent);
    count_time(WIRE_STAT_GROWN_SENT, bytes);
    return WIRE_EVENT_SAMPLED;
}

static __always_inline void count_growth(enum wire_event_stat stat)
{
    __u32 event = growth_event;
    struct wire_event_stats *counts = bpf_map_lookup_elem(&event_stats, &event);

    if (stat != WIRE_EVENT_IDLE && counts) {
        counts->count[WIRE_EVENT_TICKS]++;
        counts->count[stat & (WIRE_EVENT_STAT_COUNT - 1)]++;
    }
}

static __always_inline enum wire_event_stat growth_hit(struct wire_process *process, __u64 result)
{
    struct scratch *s = scratch_enter();

    if (!s)
        return WIRE_EVENT_NESTED;
    __u64 now_ns = bpf_ktime_get_ns();
    task_read(&s->facts);
    if (process)
        begin_second(process, now_ns >> 30);
    enum wire_event_stat stat = growth_begin(s, process, result, now_ns);
    if (stat == WIRE_EVENT_SAMPLED)
        stat = growth_sample(s, process, now_ns);
    scratch_leave(s);
    return stat;
}

/* Whether the calls of the running process are counted; stores its configuration, NULL if it has none. */
static __always_inline int growth_wanted(struct wire_process **process)
{
    __u32 tgid = bpf_get_current_pid_tgid() >> 32;

    if (!growth_enabled || !(sample_unconfigured || may_be_followed(tgid)))
        return 0;
    *process = bpf_map_lookup_elem(&processes, &tgid);
    return *process || sample_unconfigured;
}

static __always_inline int growth_enter(int system_call)
{
    struct growth_before before = {.system_call = system_call};
    struct wire_process *process;
    struct task_facts facts;

    if (!growth_wanted(&process))
        return 0;
    hit_enter();
    task_read(&facts);
    __u32 tid = bpf_get_current_pid_tgid();
    before.exec_generation = facts.exec_generation;
    memory_read((struct mm_struct *)facts.memory, &before.memory);
    if (bpf_map_update_elem(&growths_before, &tid, &before, BPF_ANY))
        count_loss(LOSS_growth_untracked);
    hit_leave();
    return 0;
}

/* A call begins that gives what depends on what there is. */
SEC("tp")
int grows(struct growth_entry *entry)
{
    return growth_enter(entry->system_call);
}

/* The same of mmap, if it is to replace what lies at its address. */
SEC("tp")
int maps(struct growth_entry *entry)
{
    return entry->arguments[3] & ARCH_MAP_FIXED ? growth_enter(entry->system_call) : 0;
}

/* A call has ended. Of those that failed, and of processes that are not followed, nothing is counted. */
SEC("tp")
int grew(struct growth_exit *ended)
{
    struct wire_process *process;
    __u64 result = ended->result;

    if (result > -4096ull || !growth_wanted(&process))
        return 0;
    hit_enter();
    __u64 start = sample_timed ? bpf_ktime_get_ns() : 0;
    count_growth(growth_hit(process, result));
    if (sample_timed)
        count_time(WIRE_STAT_CPU_NS, bpf_ktime_get_ns() - start);
    hit_leave();
    return 0;
}

#endif
