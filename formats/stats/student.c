/* SPDX-License-Identifier: Apache-2.0 */
/* Student's t: its tail by the incomplete beta function, its quantile by solving for the tail. */
#include "formats/stats/student.h"

#include <float.h>
#include <math.h>

#include "formats/stats/special.h"

/* From here on Hill's terms are right to the last digits, and the continued fraction becomes long. */
static const double NEARLY_NORMAL = 20000;
/* From here on df / (df + t^2) is df / t^2, to the last digit. */
static const double FAR = 1e20;

static double normal_upper(double z)
{
    return erfc(z / M_SQRT2) / 2;
}

/* The z of a normal distribution that has as much above it as t. */
static double normal_deviate(double t, double df)
{
    double a = df - 0.5, b = 48 * a * a, z2 = a * log1p(t / df * t), z = sqrt(z2);

    return z + ((-0.4 * z2 - 3.3) * z2 - 24) * z2 * z / (b * (0.8 * z2 * z2 + 100 + b)) -
           85.5 * z / (b * (0.8 * z2 * z2 + 100 + b)) + (z2 + 3) * z / b;
}

/* For t >= 0 and df > 0. */
static double upper(double t, double df)
{
    if (isinf(df) || t == 0)
        return normal_upper(t);
    if (df >= NEARLY_NORMAL)
        return normal_upper(normal_deviate(t, df));
    double a = df / 2, ratio = t / df * t;
    /* The first term of the series in df / t^2, whose square a double may not hold. */
    if (ratio > FAR)
        return exp(df * (log(df) / 2 - log(t)) - log_beta(a, 0.5)) / df;
    return beta_incomplete(1 / (1 + ratio), ratio / (1 + ratio), a, 0.5) / 2;
}

double student_upper(double t, double df)
{
    if (!(df > 0) || isnan(t))
        return 0.5;
    return t < 0 ? 1 - upper(-t, df) : upper(t, df);
}

/* ln of the density at t. */
static double log_density(double t, double df)
{
    if (isinf(df))
        return -t * t / 2 - log(2 * M_PI) / 2;
    double ratio = t / df * t;
    double log_ratio = ratio > FAR ? 2 * log(t) - log(df) : log1p(ratio);
    return -(df + 1) / 2 * log_ratio - log(df) / 2 - log_beta(df / 2, 0.5);
}

/*
 * For 0 < p < 1/2. Solves ln P(T > sinh(u)) = ln p for u, which is nearly a straight line in the tail of small df and a
 * parabola in that of large ones: Newton's steps, or half of what is left where a step leads out of it.
 */
static double solve(double p, double df)
{
    enum { STEPS_MAX = 200 };
    double low = 0, high = log(DBL_MAX), u = 1;

    for (int i = 0; i < STEPS_MAX; i++) {
        double t = sinh(u), at = upper(t, df), off = log(at) - log(p);
        *(off > 0 ? &low : &high) = u;
        /* off / (d off / d u) */
        double step = off * at / (exp(log_density(t, df)) * cosh(u)), next = u + step;
        if (!(next > low && next < high))
            next = low + (high - low) / 2;
        if (fabs(next - u) <= 4 * DBL_EPSILON * u || off == 0)
            break;
        u = next;
    }
    return u < log(DBL_MAX) * (1 - 8 * DBL_EPSILON) ? sinh(u) : INFINITY;
}

double student_quantile(double p, double df)
{
    if (!(p > 0))
        return INFINITY;
    if (p >= 1)
        return -INFINITY;
    if (p == 0.5)
        return 0;
    if (!(df > 0))
        return p < 0.5 ? INFINITY : -INFINITY;
    return p < 0.5 ? solve(p, df) : -solve(1 - p, df);
}
