/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Where the fields of CPython's structures lie in memory, per version.
 *
 * The frame walk (bpf/python_walk.h) is one piece of code for all versions; what
 * differs stands here, as numbers. Compiled for BPF and for user space, so it has
 * fixed-width integers only and no hidden padding. Offsets are bytes. PY_NONE marks
 * a field that the version does not have.
 */
#ifndef FORMATS_CPYTHON_LAYOUT_H
#define FORMATS_CPYTHON_LAYOUT_H

#ifndef __bpf__
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#define PY_U16 uint16_t
#define PY_U32 uint32_t
#define PY_U64 uint64_t
#define PY_U8 uint8_t
#define PY_S64 int64_t
#else
#define PY_U16 unsigned short
#define PY_U32 unsigned int
#define PY_U64 unsigned long long
#define PY_U8 unsigned char
#define PY_S64 long long
#endif

#define PY_NONE 0xffff

/* How frames are chained and where runs (activations of the eval loop) end. */
enum py_frame_kind {
    PY_FRAMES_OBJECT = 1, /* <= 3.10: PyFrameObject, one activation per frame */
    PY_FRAMES_ENTRY = 2,  /* 3.11: _PyInterpreterFrame with is_entry, _PyCFrame chain */
    PY_FRAMES_SHIM = 3,   /* 3.12+: a shim frame on the C stack ends each run */
};

/* How a thread finds one of its thread-local variables. */
enum py_tls_kind {
    PY_TLS_NONE = 0,
    PY_TLS_LOCAL_EXEC = 1, /* at thread pointer + offset (offset is negative on x86-64) */
    PY_TLS_MODULE = 2,     /* in a shared library: DTV entry of the module + offset */
    PY_TLS_SLOT = 3,       /* at thread pointer + the signed number at slot_vaddr, once the library is loaded */
    PY_TLS_DESCRIPTOR = 4, /* TLS descriptor at slot_vaddr: its second word, when negative, is the offset as in SLOT;
                              else it points to {module number, offset} as in MODULE */
};

/* How the place is found where threads sleep that wait for an interpreter's lock, the GIL. */
enum py_gil_kind {
    PY_GIL_NONE = 0,        /* there is none, or its place is not known */
    PY_GIL_RANGE = 1,       /* in a range of memory that is fixed: condition variables and mutexes lie there */
    PY_GIL_POINTER = 2,     /* in what a variable points to: a semaphore, 2.7 */
    PY_GIL_INTERPRETER = 3, /* in a range behind what a field of the interpreter's state points to, 3.12+ */
    PY_GIL_LEARN = 4,       /* not known without symbols: a stack has to show it, 3.3 to 3.6 */
};

/*
 * What of struct _gil_runtime_state (gil.c) threads wait on: bytes from its first condition variable on, and where the
 * second one begins.
 */
#define PY_GIL_LEN_BYTES 176
#define PY_GIL_SWITCH_COND 88

/*
 * How many bytes the frame walk (bpf/python_walk.h) reads of a thread state, in one piece up to thread_id, and of a
 * frame. A layout whose fields lie behind that is refused. (Frames that are objects, up to 3.10, are not limited: their
 * rows are fixed.)
 */
#define PY_TSTATE_READ_MAX 255
#define PY_FRAME_READ_MAX 120

/*
 * A thread state's `state` while the world is stopped (_Py_THREAD_SUSPENDED, Include/internal/pycore_pystate.h). A thread that
 * sleeps until it may go on has the second one since 3.15, which no earlier version has.
 */
#define PY_THREAD_SUSPENDED 2
#define PY_THREAD_SUSPENDED_WAITING 4

struct py_layout {
    PY_U32 version;    /* PY_VERSION_HEX of the interpreter, e.g. 0x030b07f0 */
    PY_U8 frame_kind;  /* enum py_frame_kind */
    PY_U8 free_threaded;
    PY_U8 debug_build;
    PY_U8 code_tag_mask;  /* the low bits of f_executable that are a tag (3.14+) */
    /* _PyRuntime */
    PY_U16 runtime_interpreters_head;
    PY_U16 runtime_tstate_current; /* <= 3.11; 0 up to 3.6, where _PyThreadState_Current stands for _PyRuntime */
    PY_U16 runtime_tss_key;        /* the 4-byte pthread key, <= 3.14; PY_NONE if debug offsets contradict the row */
    /* interpreter state */
    PY_U16 interp_next;
    PY_U16 interp_threads_head;
    PY_U16 interp_id;
    /* thread state */
    PY_U16 tstate_next;
    PY_U16 tstate_interp;
    PY_U16 tstate_frame;        /* frame, cframe or current_frame */
    PY_U16 tstate_thread_id;    /* pthread_self() */
    PY_U16 tstate_native_thread_id;
    PY_U16 tstate_root_cframe;  /* where the embedded _PyCFrame lies, 3.10 to 3.12 */
    /* _PyCFrame */
    PY_U16 cframe_current_frame;
    PY_U16 cframe_previous;
    /* frame */
    PY_U16 frame_code;
    PY_U16 frame_previous;
    PY_U16 frame_instr;  /* prev_instr, instr_ptr (addresses) or f_lasti (number) */
    PY_U16 frame_owner;
    PY_U16 frame_is_entry;
    PY_U16 frame_len_bytes; /* enough to cover the fields above */
    /* code object */
    PY_U16 code_type;       /* ob_type */
    PY_U16 code_size;       /* ob_size: code units in 3.11+ */
    PY_U16 code_first_line;
    PY_U16 code_flags;
    PY_U16 code_filename;
    PY_U16 code_name;
    PY_U16 code_qualname;
    PY_U16 code_line_table;
    PY_U16 code_version;         /* co_version, 3.12+ */
    PY_U16 code_first_traceable; /* 3.11+ */
    PY_U16 code_bytecode;        /* co_code_adaptive: the bytecode itself, 3.11+ */
    PY_U16 code_len_bytes;       /* enough to cover the fields above, co_code_adaptive excluded */
    /* str */
    PY_U16 str_length;
    PY_U16 str_hash;
    PY_U16 str_state;
    PY_U16 str_ascii_data;   /* sizeof PyASCIIObject */
    PY_U16 str_compact_data; /* sizeof PyCompactUnicodeObject */
    PY_U8 str_kind_shift;    /* within the 4 bytes at str_state */
    PY_U8 str_compact_shift;
    PY_U8 str_ascii_shift;
    PY_U8 instr_unit_bytes;  /* what frame_instr counts where it is a number; 0 where it is an address */
    /* bytes */
    PY_U16 bytes_size;
    PY_U16 bytes_data;
    PY_U16 interp_modules; /* the dict sys.modules */
    /* frames that are objects, up to 3.10; 0: the version has no such field */
    PY_U16 tstate_cframe; /* newest _PyCFrame, 3.10 */
    PY_U16 code_code;     /* co_code, a bytes object */
    /* Free-threaded 3.14+: a thread runs its own copy of the bytecode. 0: there is one only, at code_bytecode. */
    PY_U16 frame_tlbc_index; /* the index of the copy that the frame runs */
    PY_U16 code_tlbc;        /* pointer to {count, copies...} */
    /* The interpreter's lock; 0: the version has no such field. */
    PY_U16 runtime_gil; /* struct _gil_runtime_state, 3.7 to 3.11 */
    PY_U16 interp_gil;  /* pointer to it, 3.12+ */
    /* Free-threaded builds stop all threads now and then, the world. 0: not known. */
    PY_U16 tstate_state;     /* an int: PY_THREAD_SUSPENDED while the thread may not run */
    PY_U16 interp_requester; /* the state of the thread that has the world stopped */
    /* Coroutines that wait, 3.12+ (capture/asyncio/). 0: the version has no such field. */
    PY_U16 coroutine_state; /* a signed byte */
    PY_U16 coroutine_frame; /* its frame, which lies in it */
    PY_U16 frame_stack;     /* up to 3.13 an int, how many values locals and stack have; 3.14+ the address of the stack's end */
    PY_U16 frame_locals;    /* local variables, and behind them the stack of values */
    /*
     * The number that the next code object gets as its co_version, in the interpreter state; 0: it lies elsewhere, or its
     * place is not known. interp_len_bytes is the size of the interpreter states of which it is known.
     */
    PY_U16 interp_code_counter;
    PY_U16 reserved;
    PY_U32 interp_len_bytes;
};

#ifndef __bpf__
static_assert(sizeof(struct py_layout) == 124, "shared with the BPF program");
#endif

#endif
