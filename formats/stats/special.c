/* SPDX-License-Identifier: Apache-2.0 */
/* Asymptotic series where the argument is large; smaller arguments are brought there by recurrence. */
#include "formats/stats/special.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

/* From here on the series below are right to the last digits. */
static const double SERIES_FROM = 10;

/* c[0] + c[1] x + c[2] x^2 + ... */
static double polynomial(const double *c, int count, double x)
{
    double sum = 0;

    for (int i = count - 1; i >= 0; i--)
        sum = sum * x + c[i];
    return sum;
}
#define POLYNOMIAL(c, x) polynomial(c, sizeof(c) / sizeof *(c), x)

double digamma(double x)
{
    /* B(2k) / 2k, with Bernoulli's numbers B. */
    static const double c[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
    double below = 0;

    for (; x < SERIES_FROM; x++)
        below += 1 / x;
    double r = 1 / (x * x);
    return log(x) - 0.5 / x - r * POLYNOMIAL(c, r) - below;
}

double trigamma(double x)
{
    /* B(2k) */
    static const double c[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
    double below = 0;

    for (; x < SERIES_FROM; x++)
        below += 1 / (x * x);
    double r = 1 / x;
    return r + r * r * (0.5 + r * POLYNOMIAL(c, r * r)) + below;
}

/* The derivative of trigamma. */
static double tetragamma(double x)
{
    /* -(2k + 1) B(2k) */
    static const double c[] = {-1.0 / 2, 1.0 / 6, -1.0 / 6, 3.0 / 10, -5.0 / 6, 691.0 / 210, -35.0 / 2};
    double below = 0;

    for (; x < SERIES_FROM; x++)
        below -= 2 / (x * x * x);
    double r = 1 / x;
    return r * r * (-1 - r * (1 - r * POLYNOMIAL(c, r * r))) + below;
}

double trigamma_inverse(double x)
{
    enum { STEPS_MAX = 100 };
    double y = 0.5 + 1 / x;

    for (int i = 0; i < STEPS_MAX && isfinite(y); i++) {
        double at = trigamma(y), step = at * (1 - at / x) / tetragamma(y);
        /* Where trigamma(y) is so small that its square vanishes, y = 1/x to the last digit. */
        if (!isfinite(step))
            break;
        y += step;
        if (fabs(step) < 1e-14 * y)
            break;
    }
    return y;
}

/* ln gamma(x) less Stirling's formula; x >= SERIES_FROM. */
static double stirling_rest(double x)
{
    /* B(2k) / (2k (2k - 1)) */
    static const double c[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};

    return POLYNOMIAL(c, 1 / (x * x)) / x;
}

/* lgamma() also sets a global variable. */
static double log_gamma(double x)
{
    int sign;

    return lgamma_r(x, &sign);
}

double log_beta(double a, double b)
{
    double small = fmin(a, b), large = fmax(a, b), sum = a + b;

    if (large < SERIES_FROM)
        return log_gamma(small) + log_gamma(large) - log_gamma(sum);
    double rest = stirling_rest(large) - stirling_rest(sum);
    /* ln(large / sum) */
    double share = log1p(-small / sum);
    if (small < SERIES_FROM)
        return log_gamma(small) + small - small * log(sum) + (large - 0.5) * share + rest;
    return log(2 * M_PI / large) / 2 + (small - 0.5) * log(small / sum) + large * share + rest + stirling_rest(small);
}

/* The continued fraction 1/(1+ d1/(1+ d2/(1+ ...))) of I_x(a, b), from its front by Lentz's method: the products of ratios
 * of numerators and denominators. Fast for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double x, double a, double b)
{
    enum { STEPS_MAX = 20000 };
    double c = 1, d = 0, product = 1;

    for (int i = 1; i < STEPS_MAX; i++) {
        int m = i / 2;
        double at = a + 2 * m;
        /* d1, d3, ... and d2, d4, ... */
        double next = i % 2 ? -(a + m) * (a + b + m) * x / (at * (at + 1)) : m * (b - m) * x / ((at - 1) * at);
        c = 1 + next / c;
        d = 1 + next * d;
        c = fabs(c) < DBL_MIN ? DBL_MIN : c;
        d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
        product *= c * d;
        if (fabs(c * d - 1) < DBL_EPSILON)
            break;
    }
    return 1 / product;
}

/* I_x(a, b) where the fraction is fast. */
static double beta_lower(double x, double y, double a, double b)
{
    if (x <= 0)
        return 0;
    double log_x = x < 0.5 ? log(x) : log1p(-y), log_y = y < 0.5 ? log(y) : log1p(-x);
    return exp(a * log_x + b * log_y - log_beta(a, b)) / a * beta_fraction(x, a, b);
}

double beta_incomplete(double x, double y, double a, double b)
{
    bool lower = x < (a + 1) / (a + b + 2);
    double part = lower ? beta_lower(x, y, a, b) : 1 - beta_lower(y, x, b, a);

    return fmin(fmax(part, 0), 1);
}
