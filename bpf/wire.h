/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the BPF programs and pycap hand to each other: the configuration of a process
 * (a map's value), the mappings and modules that unwinding needs, and the messages in the
 * ring buffer. Both sides use this definition: fixed-width integers, sizes asserted.
 */
#ifndef BPF_WIRE_H
#define BPF_WIRE_H

#include "bpf/arch.h"
#include "formats/cpython/layout.h"

/* Entries of a sample's Python stack: 2,048 frames and as many ends of runs. */
#define WIRE_PYTHON_MAX 4096
#define WIRE_KERNEL_MAX 127
/* Native frames of a sample; a power of two. Up to 3.10 a Python call takes up to three, and recursion goes 1,000 deep. */
#define WIRE_NATIVE_MAX 4096
#define WIRE_STACK_MAX 65536 /* bytes of a copy of the user stack */
#define WIRE_STACK_ROOM (WIRE_STACK_MAX + ARCH_PAGE_BYTES) /* which is read page by page */
#define WIRE_REGISTERS ARCH_REGISTERS
#define WIRE_TASK_MAX 256 /* bytes of a task's name, header included */
#define WIRE_INTERPRETER_ID_NONE (~0ull) /* not 0, which is the main interpreter */
#define WIRE_CFA_NONE (~0ull)

enum wire_type {
    WIRE_SAMPLE = 1,
    WIRE_CODE = 2,
    WIRE_WAIT = 3,   /* struct wire_wait: a thread runs again */
    WIRE_THREAD = 4, /* struct wire_thread: a thread, or its program, has ended */
    WIRE_UNMAP = 5,  /* struct wire_unmap: a process gave memory back, or it was moved */
};

/*
 * One process to sample: value of the `processes` map, key tgid. With WIRE_PROCESS_BOUND, start_boottime_ns and
 * exec_generation name the program image that it is about; without, the first sample fills them in.
 */
struct wire_process {
    PY_U64 start_boottime_ns;
    PY_U64 exec_generation; /* task_struct.self_exec_id: counts the calls of execve() */
    PY_U64 runtime;         /* address of _PyRuntime, up to 3.6 of _PyThreadState_Current; 0: no Python */
    PY_U64 code_type;       /* address of PyCode_Type */
    /* The thread-local variable that names the thread's state while it holds the GIL, 3.12+. */
    PY_U64 tls_offset;
    PY_U64 tls_module; /* address of what tls_kind asks for: the module's number, the slot, or the descriptor */
    PY_U32 tls_kind;   /* enum py_tls_kind */
    PY_U32 layout;     /* index into the `layouts` map */
    PY_U32 key_slots;  /* offset of pthread key 0's value from the thread pointer; 0: not known for this C library */
    PY_U32 flags;      /* WIRE_PROCESS_* */
    /*
     * Its list in the `mappings` map, and the list's number, by which rows are cached (bpf/native_rows.h; 0: they are not).
     * One aligned word, read and written at once: so the two always belong together.
     */
    PY_U32 mapping_start, mapping_key;
    /* Variables of their own up to 3.6; 0: not known, or in _PyRuntime. */
    PY_U64 interpreters; /* address of interp_head */
    PY_U64 thread_key;   /* address of autoTLSkey */
    /* The thread-local variable that names the thread's state also while the GIL is released, 3.15+; as tls_* above. */
    PY_U64 gilstate_offset;
    PY_U64 gilstate_module;
    PY_U32 gilstate_kind;
    /* Offsets from asyncio's debug table, 3.14+; running_task 0: asyncio is not loaded, or not known. */
    PY_U16 running_task; /* in a thread state: the task that runs */
    PY_U16 task_name;    /* in a task: its name, or an int N while it is called Task-N */
    PY_U16 task_is_task; /* in a task: a byte that is 1 */
    PY_U16 task_size;    /* of a task, in bytes */
    /* Written by BPF: a second, and how many stacks of waits were taken in it. */
    PY_U32 wait_second;
    PY_U32 wait_stacks;
    /* Where threads that wait for the interpreter's lock (GIL) sleep. */
    PY_U16 gil_kind; /* enum py_gil_kind, which says what `gil` is */
    PY_U16 owner;    /* whose it is: below WIRE_OWNERS. Two owners may have one number */
    PY_U64 gil;
    PY_U16 gil_skip, gil_len; /* in bytes */
    PY_U32 gils; /* written by BPF: how many locks of it have an account */
    /* Written by BPF, of wait_second: bytes sent of its waits and hits; and how many stacks were taken at hits. */
    PY_U32 wait_bytes;
    PY_U32 hit_stacks;
    PY_U64 code_counter; /* address of the variable that numbers code objects, 3.12; 0: it is in the interpreter, or not known */
};
#define WIRE_OWNERS 1024
#define WIRE_RIVALS 1024
enum {
    WIRE_PROCESS_INHERITED = 1, /* copied from the parent at fork; user space has not set it yet */
    WIRE_PROCESS_BOUND = 2,     /* start_boottime_ns and exec_generation are set */
    WIRE_PROCESS_GREENLETS = 4, /* has loaded a module that switches stacks (greenlet) */
    WIRE_PROCESS_MUSL = 8, /* has no glibc: its C library is taken for musl */
    WIRE_PROCESS_BEGINS_ONCE = 16, /* it is not a program with an interpreter in it, which may end that and begin it anew */
    WIRE_PROCESS_COUNTER_WRONG = 32, /* set by BPF: what numbers code objects is not what it was taken for */
    WIRE_PROCESS_RIVAL = 64, /* another interpreter runs in it, too: that is in the `rivals` map */
};

/*
 * An executable mapping of a process: element of the `mappings` map. The mappings of a list lie side by side, sorted by
 * address and without overlaps; in front of them is an element of which only `count` is set. A list is never changed while
 * a process has it. The map's first element heads an empty list.
 */
struct wire_mapping {
    PY_U64 start, end;
    PY_U64 base;   /* address of the module's pc 0; 0 if there is no module */
    union {
        PY_U32 module; /* index into the `modules` map, or WIRE_MODULE_NONE */
        PY_U32 count;  /* in front of a list: of its mappings */
    };
    union {
        PY_U32 flags;
        PY_U32 key; /* in front of a list: its number (struct wire_process); 0: it has none, or has been given back */
    };
};
#define WIRE_MODULE_NONE 0xffffffffu
enum {
    WIRE_MAPPING_ANONYMOUS = 1, /* not from a file: code made at run time, which is unwound by frame pointer */
};

/*
 * Unwind tables lie in chunks of 1 MiB (table_chunks), one behind the other. A row and an entry of the index are a word; a wide
 * row begins at a multiple of its size, so that it lies in one chunk.
 */
#define WIRE_CHUNK_SHIFT 17
#define WIRE_CHUNK_WORDS (1u << WIRE_CHUNK_SHIFT)
#define WIRE_CHUNK_BYTES (8u << WIRE_CHUNK_SHIFT)
#define WIRE_WIDE_WORDS 4

/*
 * Where a module's unwind table lies (formats/elf/unwind_table.h), in words: element of the `modules` map. With row_count 0
 * there is no table yet, or, with row_start WIRE_TABLE_NONE, none can be made.
 */
struct wire_module {
    PY_U32 row_start, row_count;
    PY_U32 index_start, index_first, index_count;
    PY_U32 wide_start, wide_count;
    PY_U32 used_s; /* CLOCK_MONOTONIC seconds of the last use, written by BPF */
};
#define WIRE_TABLE_NONE 0xffffffffu

/*
 * An entry of a Python stack, innermost first. It is either a frame: `address` is the code object, `offset` the
 * instruction, in bytes from the start of the bytecode. Or, with WIRE_RUN, the end of a run of frames, which one activation
 * of the eval loop executes: `address` is that of the record that the activation keeps on its native stack.
 *
 * Up to 3.9 there are no such records, and each frame is a run. In 3.10 each frame is followed by its record, as the chains
 * of both were found: there is one record more at the end when there were more records than frames, and records with
 * address 0 when there were fewer.
 */
struct wire_python {
    PY_U64 address;     /* with WIRE_* bits on top */
    PY_U32 fingerprint; /* of the code object */
    int offset;         /* of the instruction, in bytes from the start of the bytecode, or WIRE_OFFSET_UNKNOWN */
};
#define WIRE_OFFSET_UNKNOWN (-0x7fffffff - 1)
#define WIRE_RUN (1ull << 63)
#define WIRE_GENERATOR (1ull << 62)
#define WIRE_UNREAD (1ull << 61) /* the code object could not be read */
#define WIRE_ADDRESS ((1ull << 61) - 1)

/*
 * A process that user space has not configured: value of the `unknown` map, key tgid. It is sampled without Python frames
 * for WIRE_UNKNOWN_NS, in which user space finds out whether it is Python.
 */
struct wire_unknown {
    PY_U64 start_boottime_ns;
    PY_U64 exec_generation;
    PY_U64 first_ns; /* time of its first tick */
    PY_U64 ticks;    /* after that time was over: these were not sampled */
};
#define WIRE_UNKNOWN_NS 250000000ull

/*
 * Whose a process was when it began its program: value of the `owners` map, key tgid. User ids are the host's. Namespaces are
 * inode numbers, of those next below the host's; 0: it is in the host's.
 */
struct wire_owner {
    PY_U64 time_ns;
    PY_U32 uid;           /* effective */
    PY_U32 container;     /* pid namespace, if its user namespace is the host's */
    PY_U32 user_ns;
    PY_U32 user_ns_owner; /* the user who made it */
    PY_U32 login;         /* the user who has logged in, from whom it descends; 0: none, root, or not known */
    PY_U32 reserved;
};

enum {
    WIRE_IN_KERNEL = 1, /* the CPU was in kernel mode */
    WIRE_STALE = 2,     /* the process has a newer image than its configuration */
    WIRE_REGISTERS_OK = 4,
    WIRE_KERNEL_THREAD = 8,  /* there is no user memory: also of a thread that is ending */
    WIRE_STACK_BELOW = 16,   /* the stack bytes begin ARCH_RED_ZONE_BYTES below the stack pointer */
    WIRE_GIL_KNOWN = 32,     /* the next bit says something */
    WIRE_GIL = 64,           /* the thread held the GIL */
    WIRE_UNCONFIGURED = 128, /* user space has not configured the process: it has no Python frames */
    WIRE_CUT = 256,          /* the sample was too large for a ring that fills up: parts of it are missing */
    WIRE_WAITS = 512,        /* the thread has left its CPU: a struct wire_wait is to follow when it runs again */
    WIRE_CONTINUES = 1024,   /* set by user space: another part of a wait that a sample before has begun */
    WIRE_LASTS = 2048,       /* set by user space: part of a wait that goes on after the sample */
    /*
     * Made by user space: the sample is of an asyncio task that waits. What it has of the task is text: its name and, behind a
     * NUL, that of the task that awaits it. `wait_site` is the number of the process's life (struct process).
     */
    WIRE_TASK = 4096,
    WIRE_STACK_UNREAD = 8192, /* of a thread that sleeps: user space is to read its stacks */
    WIRE_IN_EXEC = 16384,     /* the thread executes another program, and the memory of the one before is gone: no stacks */
    WIRE_STATE_UNREAD = 32768, /* no thread state was found, and memory could not be read: there may be one */
    WIRE_RIVAL = 65536,       /* the Python frames are of the interpreter in `rivals` */
};

/* What a thread waits for: numbers of formats/trace/enums.def, which user space checks. */
enum wire_wait_kind {
    WIRE_WAIT_NONE,
    WIRE_WAIT_BLOCKED,         /* sleeps until something happens, or for a time */
    WIRE_WAIT_UNINTERRUPTIBLE, /* the same where no signal wakes it: a disk, mostly */
    WIRE_WAIT_LOCK,            /* in futex(), and for nothing that has a kind of its own */
    WIRE_WAIT_RUN_QUEUE,       /* has been woken, and waits for a CPU */
    WIRE_WAIT_PREEMPTED,       /* could run on, but another thread runs in its place */
    WIRE_WAIT_STOPPED,         /* by a signal or a debugger */
    WIRE_WAIT_GIL,             /* in futex(), for the lock of its interpreter */
    WIRE_WAIT_STOP_THE_WORLD,  /* in futex(), until all threads of a free-threaded build have stopped, or may go on */
    WIRE_WAIT_ASLEEP,          /* only in sums, and only without BPF: for which of the above is not known, except RUN_QUEUE */
    WIRE_WAIT_TASK,            /* these are of an asyncio task: it awaits another one */
    WIRE_WAIT_FUTURE,          /* it awaits a future: a timer, the network, a lock */
    WIRE_WAIT_EVENT_LOOP,      /* it could go on, as soon as its loop has time for it */
    WIRE_WAIT_KINDS = 16,
};

/* Who woke a thread that waited, as far as it was asked for. */
enum wire_waker {
    WIRE_WAKER_NONE,      /* not known */
    WIRE_WAKER_THREAD,    /* a thread of a process that is followed */
    WIRE_WAKER_INTERRUPT, /* a timer, a disk, the network: whichever thread was running had nothing to do with it */
    WIRE_WAKER_OTHER,     /* another process, or the kernel */
};
#define WIRE_NO_SYSTEM_CALL (-1)
#define WIRE_CHANCE_ALL 0xffffffffu /* each wait */
#define WIRE_SLEPT_UNKNOWN 0xffffffffu
/* A wait that lasts so long has a stack of its own: if none was taken, user space reads it while the wait lasts. */
#define WIRE_WAIT_LONG_NS 1000000000ull

/* How the sampler unwinds native frames. */
enum wire_native { WIRE_NATIVE_NONE = 0, WIRE_NATIVE_TABLES = 1, WIRE_NATIVE_FRAME_POINTERS = 2 };

/*
 * A sample. Behind it come the kernel's addresses (8 bytes each), Python entries and native frames (16 bytes each), the
 * running task's name (the beginning of the object), and stack bytes.
 */
struct wire_sample {
    PY_U32 type;
    PY_U32 flags;
    PY_U64 time_ns; /* CLOCK_MONOTONIC */
    PY_U32 tgid, tid;
    PY_U32 cpu;
    PY_U32 event;   /* index of the event that fired */
    PY_U64 start_boottime_ns;
    PY_U64 exec_generation;
    PY_U64 period;  /* counts of the event that the sample stands for */
    PY_U64 stack_size; /* bytes from the stack pointer to the stack's start; 0: not known */
    PY_U32 kernel_count;
    PY_U32 python_count;
    PY_U32 stack_len_bytes;
    PY_U32 python_end; /* loss reason; 0: no Python stack */
    PY_U32 native_count;
    PY_U32 native_end; /* loss reason; 0: not unwound here */
    PY_U64 native_last_cfa; /* of the outermost native frame; WIRE_CFA_NONE: not known */
    /* The thread's pthread handle and its interpreter's address; 0: no thread state was found. */
    PY_U64 thread_handle, interpreter;
    PY_U64 interpreter_id; /* WIRE_INTERPRETER_ID_NONE: not known */
    PY_U32 task_len_bytes;
    PY_U32 stack_holes; /* bit N: the Nth page that the stack bytes touch could not be read; its bytes are 0 */
    PY_U32 wait_kind;   /* enum wire_wait_kind; WIRE_WAIT_NONE: the thread was running */
    int system_call;    /* number of the one that it waits in, or WIRE_NO_SYSTEM_CALL */
    PY_U64 wait_site;   /* the call site that it waits at: a key of the `wait_sites` map */
    /* Set by user space in the last sample of a wait of each kind: how long it was, and what its call site owes of that kind. */
    PY_U64 waited_ns, owed_ns;
    PY_U64 blame_ns, owed_blame_ns; /* as in struct wire_wait; set by user space, too */
    PY_U64 taken_ns; /* when its stack was taken; set by user space; 0: at time_ns */
    PY_U64 futex; /* address that it waits on in futex(); 0: none, or several */
    PY_U32 gil_waiters; /* threads that wait for the lock of the interpreter, which this thread holds; 0: it holds none */
    /* Set by user space in the last samples of a wait: who ended it, as in struct wire_wait. */
    PY_U32 waker_kind;
    PY_U32 waker_tgid, waker_tid;
    PY_U32 wait_chance; /* with which this wait has a stack: of WIRE_CHANCE_ALL */
    PY_U32 slept_ms;    /* of a wait that was met as it lasted: for how long before time_ns it had, by the scheduler's clock, or WIRE_SLEPT_UNKNOWN */
    PY_U32 user; /* effective user id of the thread, and one, in some samples; 0: not known */
    PY_U32 reserved;
    PY_U64 grown_start, grown_bytes; /* memory that the process was given; 0: none. `period` stands for as much, or for more */
    PY_U64 registers[WIRE_REGISTERS]; /* DWARF order */
};

/* One sample of so many shows the user; a power of two. */
#define WIRE_USERS_SHOWN 8

/*
 * Memory of a process is gone, or was moved: then the first kept_len_bytes of it lie at `moved_to`, which is else 0. Sent for
 * WIRE_YOUNG_NS after a sample of memory that the process was given: what is gone so soon was no growth.
 */
struct wire_unmap {
    PY_U32 type;
    PY_U32 tgid;
    PY_U64 time_ns;
    PY_U64 start, len_bytes;
    PY_U64 moved_to, kept_len_bytes;
};
#define WIRE_YOUNG_NS 750000000ull

/*
 * A thread runs again, for which a sample with WIRE_WAITS was sent at `out_ns`. Its call site owes other waits, of which no
 * stack was taken.
 */
struct wire_wait {
    PY_U32 type;
    PY_U32 kind; /* enum wire_wait_kind */
    PY_U32 tgid, tid;
    PY_U64 out_ns, in_ns;
    PY_U64 queue_ns;      /* of the time between: it had been woken, and waited for a CPU */
    PY_U64 owed_ns, owed_queue_ns;
    /* The thread holds its interpreter's lock: how long others waited for it meanwhile, and what the call site owes of that. */
    PY_U64 blame_ns, owed_blame_ns;
    PY_U32 waker_kind; /* enum wire_waker */
    PY_U32 waker_tgid, waker_tid;
    PY_U32 reserved;
};

/* What the waits at a call site have in common; value of the `wait_sites` map. Only one thread meets a site. */
struct wire_wait_site {
    PY_U64 mean_ns, count;         /* the mean of their lengths, of the last ones where there are many; and how many there were */
    PY_U64 owed_ns, owed_queue_ns; /* of those without a stack since the last that had one: waiting, and in the run queue */
    PY_U64 owed_blame_ns;          /* and how long others waited for the interpreter's lock, which the thread held */
};

/* A call site that a thread met lately. While it is here, it owes nothing in the `wait_sites` map. */
struct wire_near_site {
    PY_U64 key;
    struct wire_wait_site site;
};
#define WIRE_NEAR_SITES 4 /* a power of two */
/*
 * Who waits for an interpreter's lock: value of the `gils` map. `waits` is one word, so that it is changed and read at once:
 * its low bits are how many threads wait now; the others are the times at which waits ended less those at which they began,
 * in units of WIRE_GIL_UNIT_NS. With the time, so much for each that waits now, that is how long all have waited so far. It
 * overflows, which differences do not mind: they are right up to a year of waiting.
 */
struct wire_gil_key {
    PY_U64 address;
    PY_U32 tgid;
    PY_U32 reserved;
};
struct wire_gil {
    PY_U64 waits;
    PY_U64 since_ns; /* when the account was opened */
};
#define WIRE_GIL_WAITERS_BITS 14
#define WIRE_GIL_WAITERS_MAX ((1u << WIRE_GIL_WAITERS_BITS) - 1)
#define WIRE_GIL_UNIT_NS 64
/* What a thread has to do with its interpreter's lock while it is off its CPU. */
enum wire_gil_role { WIRE_GIL_NEITHER, WIRE_GIL_WAITS, WIRE_GIL_HOLDS };

/* What is added to `waits` when a thread begins to wait, and when its wait ends. */
static inline PY_U64 wire_gil_begins(PY_U64 time_ns)
{
    return 1 - (time_ns / WIRE_GIL_UNIT_NS << WIRE_GIL_WAITERS_BITS);
}
static inline PY_U64 wire_gil_ends(PY_U64 time_ns)
{
    return (time_ns / WIRE_GIL_UNIT_NS << WIRE_GIL_WAITERS_BITS) - 1;
}
static inline PY_U32 wire_gil_waiters(PY_U64 waits)
{
    return (PY_U32)waits & WIRE_GIL_WAITERS_MAX;
}
/* How long all threads together waited between two times at which `waits` was read. */
static inline PY_U64 wire_gil_waited_ns(PY_U64 first, PY_U64 first_ns, PY_U64 last, PY_U64 last_ns)
{
    PY_U64 first_units = (first >> WIRE_GIL_WAITERS_BITS) + wire_gil_waiters(first) * (first_ns / WIRE_GIL_UNIT_NS);
    PY_U64 last_units = (last >> WIRE_GIL_WAITERS_BITS) + wire_gil_waiters(last) * (last_ns / WIRE_GIL_UNIT_NS);
    PY_U64 shifted = (last_units - first_units) << WIRE_GIL_WAITERS_BITS; /* the bits above it count for nothing */

    /* A wait that began between a time and its reading counts as negative there. */
    return shifted >> 63 ? 0 : (shifted >> WIRE_GIL_WAITERS_BITS) * WIRE_GIL_UNIT_NS;
}

/* Where the time of a thread went, exactly, and what it does now: value of the `waits` map, key tid. */
struct wire_wait_sum {
    PY_U64 ns, count;
};
struct wire_thread {
    PY_U32 type;       /* WIRE_THREAD: this is the message, too */
    PY_U32 runs;       /* it is on a CPU; else it waits */
    PY_U32 tgid, tid;
    PY_U64 start_boottime_ns, exec_generation; /* of its program, as in struct wire_process */
    PY_U64 since_ns;   /* from here on it is accounted for: from its first switch */
    PY_U64 switched_ns; /* its last switch */
    PY_U64 on_cpu_ns;  /* until then */
    struct wire_wait_sum waits[WIRE_WAIT_KINDS];
    /* The wait that it is in, or was in last. */
    PY_U32 kind;
    int system_call;
    PY_U64 queued_ns; /* what the kernel counted of its time in run queues before */
    PY_U64 site;      /* key of the call site */
    PY_U64 futex;     /* what it waits on, where that is one futex; else 0 */
    PY_U64 tstate;    /* address of its Python thread state, as last seen; 0: not known */
    PY_U64 gil;       /* where its interpreter's lock lies, as last seen; 0: not known */
    PY_U64 gil_since_ns; /* of the lock's account, where the thread has a part in it: then the account is that same one */
    PY_U64 gil_waits;    /* it holds the lock: the account when it left its CPU */
    PY_U32 has_stack; /* a sample was sent */
    PY_U32 stacks;    /* that were sent of it in all */
    PY_U32 waker_kind; /* enum wire_waker: who ends the wait, as soon as that is known */
    PY_U32 waker_tgid, waker_tid;
    PY_U32 chance;    /* as in struct wire_sample */
    PY_U32 near_next; /* of the next: the one that makes room for another */
    PY_U32 gil_role;  /* enum wire_gil_role */
    PY_U32 ended;     /* but there was no room for the message: user space takes it from the map */
    PY_U32 reserved;
    struct wire_near_site near[WIRE_NEAR_SITES];
};

/* How far below the stack pointer the stack bytes begin. */
static inline PY_U64 wire_stack_below(const struct wire_sample *m)
{
    return m->flags & WIRE_STACK_BELOW ? ARCH_RED_ZONE_BYTES : 0;
}

/* Where the stack bytes begin. */
static inline PY_U64 wire_stack_address(const struct wire_sample *m)
{
    return m->registers[ARCH_SP] - wire_stack_below(m);
}

/* Whether `address`, at or above the first stack byte, lies in a page of the stack that could not be read. */
static inline int wire_stack_is_hole(const struct wire_sample *m, PY_U64 address)
{
    PY_U64 page = address / ARCH_PAGE_BYTES - wire_stack_address(m) / ARCH_PAGE_BYTES;

    return page < 32 && m->stack_holes >> page & 1;
}

/* A code object, in pieces of memory whose bytes come behind it, in order. */
#define WIRE_CODE_PIECES 5 /* code object, name, qualified name, file name, line table */
struct wire_piece {
    PY_U64 address;
    PY_U32 len_bytes;
    PY_U32 reserved;
};
struct wire_code {
    PY_U32 type;
    PY_U32 fingerprint;
    PY_U64 time_ns;
    PY_U32 tgid;
    PY_U32 flags; /* WIRE_RIVAL */
    PY_U64 start_boottime_ns;
    PY_U64 exec_generation;
    PY_U64 address;
    struct wire_piece pieces[WIRE_CODE_PIECES];
};

/* To read the clock again takes a tenth of such a look. A power of two. */
#define WIRE_LOOKS_TIMED 16

/* Size of the table that says whether anything is known of processes with such a tgid; a power of two. */
#define WIRE_FOLLOWED 16384

/* The most events that are sampled at once; a power of two. */
#define WIRE_EVENT_MAX 8

/* What is counted of the sampler as a whole: keys of the `stats` map (per CPU). */
enum wire_stat {
    WIRE_STAT_CODES,   /* code objects sent */
    WIRE_STAT_RETRIES, /* walks that began again further out */
    WIRE_STAT_LISTS,   /* searches over the lists of thread states */
    WIRE_STAT_CPU_NS,  /* time in the sampler where it takes stacks, if user space asks for it */
    WIRE_STAT_LOOK_NS, /* likewise: where it looks at a switch and takes none, by one in WIRE_LOOKS_TIMED of them */
    WIRE_STAT_GROWN_BYTES, /* of memory that processes were given */
    WIRE_STAT_GROWN_SENT,  /* of these, what the samples stand for that were sent */
    /* If user space asks for it: stacks unwound with and without cached rows, and what came of that. */
    WIRE_STAT_UNWOUND_TWICE,
    WIRE_STAT_UNWOUND_OTHERWISE, /* they were not the same */
    WIRE_STAT_UNWOUND_FRAMES,
    WIRE_STAT_UNWOUND_CACHED, /* of these, the ones whose rows were cached */
    WIRE_STAT_COUNT = 16,
};

/*
 * What is counted of each event. Every tick is counted once as a tick, and once as one of the others. Of waits the ticks
 * are the switches away from threads that are followed.
 */
enum wire_event_stat {
    WIRE_EVENT_TICKS,     /* the sampler ran */
    WIRE_EVENT_SAMPLED,   /* and sent a sample */
    WIRE_EVENT_IDLE,      /* and found the idle task */
    WIRE_EVENT_OTHERS,    /* and found a process that is not to be sampled */
    WIRE_EVENT_NESTED,    /* and found itself running already: LOSS_nested */
    WIRE_EVENT_RING_FULL, /* and found no room for its sample: LOSS_ring_full */
    WIRE_EVENT_THINNED,   /* and left it to a later stack at the same call site, or to a later hit, to stand for this one */
    WIRE_EVENT_REFUSED,   /* and found that the process has had its share of the ring: LOSS_hit_quota */
    WIRE_EVENT_STAT_COUNT = 8,
};
/* Value of the `event_stats` map (per CPU), key the index of the event. */
struct wire_event_stats {
    PY_U64 count[WIRE_EVENT_STAT_COUNT];
};

/* What a stage of a sample took (bpf/stages.h). */
struct wire_stage {
    PY_U64 samples, ns, reads, read_bytes;
};

/* What a hit of a tracepoint counts: the value of a field of its record; with `size` 0 it counts 1. */
struct wire_hit_weight {
    PY_U32 offset, size; /* in bytes; 1, 2, 4 or 8 of them */
    PY_U32 is_signed;
    PY_U32 reserved;
};
/* The most that one hit counts, whatever its field says. */
#define WIRE_HIT_MOST (1ull << 48)
/* Value of the `hits` map (per CPU), key the index of the event: what hits of followed processes counted. */
struct wire_hits {
    PY_U64 count;
    PY_U64 left; /* of it, since the last period was full */
};
/* After so many stacks at a process's hits in a second, half as many are taken for the rest of it; and again after as many. */
#define WIRE_HIT_SECOND_SHIFT 12
#define WIRE_HIT_REFUSAL 64 /* a stack for which the ring had no room counts as so many there */
#define WIRE_HIT_HALVINGS_MAX 15
/* Numbers in the place of calls that user space puts into programs: no others are like them. */
#define WIRE_CALL_PREEMPT_DISABLE 0x70724431
#define WIRE_CALL_PREEMPT_ENABLE 0x70724532
#define WIRE_HIT_CPUS 8192 /* Linux has no more on this machine; a power of two */

/* Losses that are not of one event have a map of their own (per CPU), by the numbers of losses.def. */
#define WIRE_LOSS_COUNT 128

#ifndef __bpf__
static_assert(sizeof(struct wire_process) == 160, "a map's value");
static_assert(sizeof(struct wire_mapping) == 32, "a map's value");
static_assert(__builtin_offsetof(struct wire_process, mapping_start) % 8 == 0, "one word with mapping_key");
static_assert(sizeof(struct wire_unknown) == 32, "a map's value");
static_assert(sizeof(struct wire_owner) == 32, "a map's value");
static_assert(sizeof(struct wire_module) == 32, "a map's value");
static_assert(sizeof(struct wire_python) == 16, "an entry");
static_assert(sizeof(struct wire_wait) == 88, "no holes");
static_assert(sizeof(struct wire_thread) == 160 + 16 * WIRE_WAIT_KINDS + 48 * WIRE_NEAR_SITES, "a map's value");
static_assert(sizeof(struct wire_sample) == 240 + 8 * WIRE_REGISTERS, "no holes");
static_assert(sizeof(struct wire_unmap) == 48, "no holes");
static_assert(sizeof(struct wire_code) == 48 + 16 * WIRE_CODE_PIECES, "no holes");
#endif

#endif
