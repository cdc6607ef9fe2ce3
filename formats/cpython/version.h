/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of CPython: which are known, how they differ in behaviour, how they are written. A version is given as its
 * PY_VERSION_HEX, such as 0x030b07f0 for 3.11.7. Offsets of fields are in layout.h; both come from versions.def.
 */
#ifndef FORMATS_CPYTHON_VERSION_H
#define FORMATS_CPYTHON_VERSION_H

#include <stdbool.h>
#include <stdint.h>

/* How a code object's line table is encoded; linetable.c describes the encodings. */
enum py_lines {
    PY_LINES_UNSIGNED,  /* co_lnotab, the line only grows */
    PY_LINES_SIGNED,    /* co_lnotab */
    PY_LINES_RANGES,    /* co_linetable of PEP 626 */
    PY_LINES_LOCATIONS, /* co_linetable of PEP 657, with columns */
};

/* Which variable points to the state of the thread that runs Python, and where a thread finds its own. */
enum py_state {
    PY_STATE_VARIABLE,     /* _PyThreadState_Current; a thread finds its own by its handle */
    PY_STATE_VARIABLE_KEY, /* likewise, and a pthread key, whose number is in the variable autoTLSkey */
    PY_STATE_RUNTIME,      /* both are fields of _PyRuntime */
    PY_STATE_TLS,          /* the thread-local _Py_tss_tstate; the pthread key is a field of _PyRuntime */
    PY_STATE_TLS_KEPT,     /* likewise, and the thread-local _Py_tss_gilstate in place of the key */
};

/* How dicts, the attributes of instances and ints lie in memory; thread_name.c describes them. */
enum py_dicts { PY_DICTS_TABLE, PY_DICTS_SLOTS, PY_DICTS_INDEXED, PY_DICTS_LOG2 };
enum py_instances { PY_INSTANCES_DICT, PY_INSTANCES_VALUES, PY_INSTANCES_TAGGED, PY_INSTANCES_INLINE };
enum py_ints { PY_INTS_LONG, PY_INTS_SIZED, PY_INTS_TAGGED };

/* How a coroutine shows that it awaits something, which is on its stack of values then, by the number in its row. */
enum py_awaits {
    PY_AWAITS_NONE,   /* not known: before 3.12 */
    PY_AWAITS_RESUME, /* it is suspended, and this opcode comes next, with an argument of 2 or more. Else as COUNTED */
    PY_AWAITS_COUNTED, /* this state. What it awaits is the last value; the frame says how many there are */
    PY_AWAITS_STATE,  /* this state. What it awaits is the last value; the frame says where they end */
    PY_AWAITS_BELOW,  /* this state. What it awaits is the value below the last one */
};

/* How a minor version differs from others, in every patch release and flavour. */
struct py_behaviour {
    enum py_lines lines;
    enum py_state state;
    bool qualname; /* code objects have co_qualname */
    enum py_dicts dicts;
    enum py_instances instances;
    enum py_ints ints;
    uint16_t cached_keys;         /* ht_cached_keys of a type, in a build with the GIL; 0: not needed */
    const char *thread_name;      /* a threading.Thread's attribute with its name */
    bool debug_objects_larger;    /* a debug build's objects have a larger header */
    bool asyncio_offsets;         /* asyncio has a table of the offsets of its tasks */
    enum py_awaits awaits;
    int16_t awaits_number;
    int8_t runs; /* the state of a coroutine that runs, or that awaits one that does; where `awaits` says how */
};

/* Where a task of asyncio has its fields, in bytes behind the header of an object. */
struct py_task_fields {
    uint16_t state, waiter, coroutine, name, size;
};
/* NULL: the version has a table of its own for that, or no task can be read. Static. */
const struct py_task_fields *py_task_fields_of(uint32_t version_hex);


/* NULL: versions.def does not have the version. A pre-release has its final release's. Static. */
const struct py_behaviour *py_behaviour_of(uint32_t version_hex);

/* Writes "3.11.7" or "3.13.0rc2" into `buf` and returns it; of 0, which is no version, "?". */
const char *py_version_text(uint32_t version_hex, char buf[32]);
/* The known versions, for --help and pycap info: "3.11 3.12". Static. */
const char *py_versions_known(void);

#endif
