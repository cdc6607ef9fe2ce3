/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says that it is a CPython. Every word of its runtime leads to the same place, which the recorder follows.
 * usage: fake_python SECONDS self|odd|edge|none|random|ADDRESS
 * self: to the runtime itself. odd: the same, unaligned. edge: to the last bytes before memory that may not be read.
 * none: to such memory. random: anywhere into the runtime.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/hostile/attack.h"

enum { WORDS = 65536 };

extern const unsigned Py_Version;
extern unsigned long _PyRuntime[WORDS], PyCode_Type[64], PyUnicode_Type[64], PyLong_Type[64];
extern __thread unsigned long _PyThreadState_Current_tls;
int _PyEval_EvalFrameDefault(void);
void *PyThreadState_Get(void);
void *PyGILState_GetThisThreadState(void);

const unsigned Py_Version = 0x030b02f0;
unsigned long _PyRuntime[WORDS] __attribute__((aligned(4096), section(".PyRuntime"))) = {1};
unsigned long PyCode_Type[64] = {1}, PyUnicode_Type[64] = {1}, PyLong_Type[64] = {1};
__thread unsigned long _PyThreadState_Current_tls;

int _PyEval_EvalFrameDefault(void)
{
    for (volatile long i = 0;; i++)
        ;
}

void *PyThreadState_Get(void)
{
    return NULL;
}

void *PyGILState_GetThisThreadState(void)
{
    return NULL;
}

static unsigned long word(const char *how, char *page)
{
    unsigned long runtime = (unsigned long)_PyRuntime;

    if (!strcmp(how, "self"))
        return runtime;
    if (!strcmp(how, "odd"))
        return runtime + 1;
    if (!strcmp(how, "edge"))
        return (unsigned long)page + 4093;
    if (!strcmp(how, "none"))
        return (unsigned long)page + 4096;
    return !strcmp(how, "random") ? runtime + (random() & (sizeof(_PyRuntime) - 1)) : strtoul(how, NULL, 0);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || mprotect(page + 4096, 4096, PROT_NONE))
        DIE("mmap");
    memset(page, 0xff, 4096);
    for (int i = 0; i < WORDS; i++)
        _PyRuntime[i] = word(argv[2], page);
    for (int i = 0; i < 64; i++)
        PyCode_Type[i] = PyUnicode_Type[i] = PyLong_Type[i] = word(argv[2], page);
    wait_for_go();
    alarm((unsigned)atoi(argv[1]));
    return _PyEval_EvalFrameDefault();
}
