/* SPDX-License-Identifier: Apache-2.0
 * elementwise_peers_template.h: the loops of elementwise_peers.h for T (float, double) and I, the integer of its size,
 * in vectors of BYTES; NAME(word) makes a name of its own and TABLE is the table's. Included once for each. */

typedef T NAME(vector) __attribute__((vector_size(BYTES)));
typedef I NAME(bits) __attribute__((vector_size(BYTES)));
typedef NAME(vector) (*NAME(call1))(NAME(vector));
typedef NAME(vector) (*NAME(call2))(NAME(vector), NAME(vector));

static inline NAME(vector) NAME(pick)(NAME(bits) first, NAME(vector) x, NAME(vector) y) {
  return (NAME(vector))((first & (NAME(bits))x) | (~first & (NAME(bits))y));
}
static inline NAME(vector) NAME(all)(T c) {
  return c - (NAME(vector)){0};
}

#define F0(v) ((NAME(call1))p->f[0])(v)
#define F1(v) ((NAME(call1))p->f[1])(v)
#define F2(v) ((NAME(call1))p->f[2])(v)
#define G0(v, w) ((NAME(call2))p->f[0])(v, w)
#define FORM(form, expression)                                                                 \
  static void NAME(form)(const peer *p, void *out, const void *xs, const void *ys, size_t n) { \
    for (size_t i = 0; i < n * sizeof(T); i += BYTES) {                                        \
      NAME(vector) x, y, result;                                                               \
      memcpy(&x, (const char *)xs + i, BYTES);                                                 \
      memcpy(&y, (const char *)ys + i, BYTES);                                                 \
      result = (expression);                                                                   \
      memcpy((char *)out + i, &result, BYTES);                                                 \
    }                                                                                          \
  }
FORM(one, F0(x))
FORM(two, G0(x, y))
FORM(sigmoid, 1 / (1 + F0(-x)))
FORM(silu, x / (1 + F0(-x)))
FORM(gelu, (T)0.5 * x * F0(x * (T)-0.70710678118654752))
FORM(gelu_tanh, x / (1 + F0(x * (x * x * (T)-0.07135481627159874 - (T)1.5957691216057308))))
FORM(softplus, NAME(pick)(x > 0, x, NAME(all)(0)) + F1(F0(NAME(pick)(x > 0, -x, x))))
static inline NAME(vector) NAME(mish_of)(NAME(vector) x, NAME(vector) e) {
  const NAME(vector) n = e * (e + 2);
  return x * (n / (n + 2));
}
FORM(mish, NAME(mish_of)(x, F0(NAME(pick)(x < 40, x, NAME(all)(40)))))
FORM(logit, F0(x / (1 - x)))
FORM(elu, NAME(pick)(x > 0, x, y *F0(x)))
FORM(chain, F0(x) * F1(y) + F2(y))
FORM(nested, F0(F1(x)) * F2(y))
#undef FORM

const peer_run TABLE[PEER_FORMS] = {
    [PEER_ONE] = NAME(one),           [PEER_TWO] = NAME(two),     [PEER_SIGMOID] = NAME(sigmoid),
    [PEER_SILU] = NAME(silu),         [PEER_GELU] = NAME(gelu),   [PEER_GELU_TANH] = NAME(gelu_tanh),
    [PEER_SOFTPLUS] = NAME(softplus), [PEER_MISH] = NAME(mish),   [PEER_LOGIT] = NAME(logit),
    [PEER_ELU] = NAME(elu),           [PEER_CHAIN] = NAME(chain), [PEER_NESTED] = NAME(nested)};
#undef F0
#undef F1
#undef F2
#undef G0
#undef T
#undef I
#undef NAME
#undef TABLE
