/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers that a seed repeats: xoshiro256** (Blackman and Vigna, Scrambled linear pseudorandom number generators,
 * ACM Transactions on Mathematical Software 47, 2021), whose state splitmix64 makes of the seed; and the distributions that
 * made-up runs need.
 */
#ifndef TESTS_TOOLS_RANDOM_H
#define TESTS_TOOLS_RANDOM_H

#include <math.h>
#include <stdint.h>

struct random {
    uint64_t state[4];
};

static inline struct random random_of(uint64_t seed)
{
    struct random r;

    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        r.state[i] = z ^ z >> 31;
    }
    return r;
}

static inline uint64_t random_bits(struct random *r)
{
    uint64_t *s = r->state, times5 = s[1] * 5, result = (times5 << 7 | times5 >> 57) * 9, shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = s[3] << 45 | s[3] >> 19;
    return result;
}

/* Between 0 and 1, neither of which it is. */
static inline double random_uniform(struct random *r)
{
    return ((double)(random_bits(r) >> 11) + 0.5) * 0x1p-53;
}

/* Of mean 0 and standard deviation 1 (Box and Muller). */
static inline double random_normal(struct random *r)
{
    double radius = sqrt(-2 * log(random_uniform(r)));

    return radius * cos(2 * M_PI * random_uniform(r));
}

/*
 * How often something happens that happens `mean` times on average. Few: counted one by one. Many: by the transformed
 * rejection of Hörmann (The transformed rejection method for generating Poisson random variables, Insurance: Mathematics
 * and Economics 12, 1993; PTRS).
 */
static inline double random_poisson(struct random *r, double mean)
{
    int sign;

    if (mean < 12) {
        double product = random_uniform(r), least = exp(-mean), count = 0;
        for (; product > least; count++)
            product *= random_uniform(r);
        return count;
    }
    double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b, alpha = 1.1239 + 1.1328 / (b - 3.4);
    for (;;) {
        double u = random_uniform(r) - 0.5, v = random_uniform(r), us = 0.5 - fabs(u);
        double count = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2))
            return count;
        if (count < 0 || (us < 0.013 && v > us))
            continue;
        if (log(v * alpha / (a / (us * us) + b)) <= count * log(mean) - mean - lgamma_r(count + 1, &sign))
            return count;
    }
}

#endif
