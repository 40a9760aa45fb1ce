/* SPDX-License-Identifier: Apache-2.0
 * complex_template.h: complex numbers in the vectors of E: the parts of a number lie side by side. Included by the
 * other templates, once for each type. */

/* The sums of a complex column, from those with the real and with the imaginary parts of B (at_join). */
SIMD P(vector) FN(join)(P(vector) by_re, P(vector) by_im, const P(vector) turn, const P(vector) sign) {
  return P(fma)(turn, P(swap_pairs)(by_im), P(mul)(sign, by_re));
}

/* x times a complex number, given as re and (-im, im); a real one leaves what is not finite in its part. */
SIMD P(vector) FN(times)(P(vector) x, const P(vector) re, const P(vector) im, bool real) {
  const P(vector) product = P(mul)(re, x);
  return real ? product : P(fma)(im, P(swap_pairs)(x), product);
}
