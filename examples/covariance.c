/* SPDX-License-Identifier: Apache-2.0
 * covariance.c: covariance matrices of complex signals, R = X X^H / SAMPLES for each of several frequencies, as one
 * batch of c64 products whose second matrix is the first one's conjugate transpose. */
#include <attune/attune.h>

#include <complex.h>
#include <stdio.h>
#include <stdlib.h>

enum { SENSORS = 8, SAMPLES = 64, FREQUENCIES = 16, IN = SENSORS * SAMPLES, OUT = SENSORS * SENSORS };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

/* Element (i,j) of a frequency's covariance, in double. */
static double complex covariance(const float complex *x, int i, int j) {
  double complex sum = 0.0;
  for (int s = 0; s < SAMPLES; s++)
    sum += (double complex)x[i + s * SENSORS] * conj((double complex)x[j + s * SENSORS]);
  return sum / SAMPLES;
}

int main(void) {
  static float complex x[FREQUENCIES * IN], r[FREQUENCIES * OUT];
  for (int i = 0; i < FREQUENCIES * IN; i++) x[i] = (float)(i % 13 - 6) + (float)(i % 7 - 3) * (float complex)I;

  attune_device *device = NULL;
  attune_tuner *tuner = NULL;
  attune_stream *stream = NULL;
  void *device_x = NULL, *device_r = NULL;
  check(attune_device_get(&device, "best"));
  check(attune_tuner_create(&tuner, NULL));
  check(attune_stream_create(&stream, device));
  check(attune_alloc(&device_x, stream, sizeof x));
  check(attune_alloc(&device_r, stream, sizeof r));
  check(attune_copy(stream, device_x, x, sizeof x));

  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT; /* column-major: a column is a sample of all sensors */
  problem.dtype = ATTUNE_C64;
  problem.trans_b = ATTUNE_C;
  problem.m = problem.n = SENSORS, problem.k = SAMPLES;
  problem.batch = FREQUENCIES;
  const attune_gemm_operands operands = {
      .alpha = 1.0 / SAMPLES, .a = device_x, .b = device_x, .d = device_r}; /* alpha_imag is 0 */
  check(attune_gemm(tuner, stream, &problem, &operands));

  check(attune_copy(stream, r, device_r, sizeof r));
  check(attune_stream_synchronize(stream));
  int wrong = 0;
  for (int i = 0; i < FREQUENCIES * OUT; i++) {
    const double complex error = (double complex)r[i] - covariance(x + i / OUT * IN, i % SENSORS, i % OUT / SENSORS);
    wrong += creal(error * conj(error)) > 1e-8;
  }
  printf("%s: R[0] of the first frequency is %g%+gi, %d of %d elements are wrong\n", attune_device_name(device),
         (double)crealf(r[0]), (double)cimagf(r[0]), wrong, FREQUENCIES * OUT);
  check(attune_free(device_x, stream));
  check(attune_free(device_r, stream));
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  return wrong ? 1 : 0;
}
