/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's extension module: one function that computes, one that calls back into Python. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static inline uint32_t rotate(uint32_t x, int by)
{
    return (x << by) | (x >> (32 - by));
}

static __attribute__((noinline)) uint32_t mix_bytes(const unsigned char *bytes, Py_ssize_t len)
{
    uint32_t x = 0x9e3779b9;

    for (Py_ssize_t i = 0; i < len; i++)
        x = rotate(x ^ bytes[i], 13) * 5 + 0xe6546b64;
    return x;
}

static PyObject *mix(PyObject *self, PyObject *arg)
{
    Py_buffer view;
    uint32_t x;

    if (PyObject_GetBuffer(arg, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    x = mix_bytes(view.buf, view.len);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(x);
}

static PyObject *each(PyObject *self, PyObject *args)
{
    PyObject *function, *result;
    int count;

    if (!PyArg_ParseTuple(args, "Oi", &function, &count))
        return NULL;
    for (int i = 0; i < count; i++) {
        result = PyObject_CallFunction(function, "i", i);
        if (!result)
            return NULL;
        Py_DECREF(result);
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"mix", mix, METH_O, "mix(bytes) -> int: a checksum of them"},
    {"each", each, METH_VARARGS, "each(function, count): calls function(i) for i below count"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "demo_native", NULL, -1, methods};

PyMODINIT_FUNC PyInit_demo_native(void)
{
    return PyModule_Create(&module);
}
