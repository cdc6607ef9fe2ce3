// SPDX-License-Identifier: Apache-2.0
// A library for ctypes: threads of C that call back, each several times, and a function that keeps a CPU busy.
#include <pthread.h>

double c_burn(int numbers)
{
    volatile double total = 0;
    for (int i = 0; i < numbers; i++)
        total += i % 7;
    return total;
}

struct calls {
    int (*function)(int);
    int count;
};

static void *calls_run(void *data)
{
    struct calls *calls = data;
    for (int i = 0; i < calls->count; i++)
        calls->function(i);
    return NULL;
}

void c_threads(int (*function)(int), int threads, int count)
{
    pthread_t begun[16];
    struct calls calls = {function, count};
    for (int i = 0; i < threads && i < 16; i++)
        pthread_create(&begun[i], NULL, calls_run, &calls);
    for (int i = 0; i < threads && i < 16; i++)
        pthread_join(begun[i], NULL);
}
