/* Percentiles of recent latencies. */
#include "host.h"

#include <math.h>

#include "latency.h"

static tp_latency *empty(void) {
  tp_latency *l = calloc(1, sizeof *l);
  assert_non_null(l);
  l->full = 2048;
  return l;
}

static void forget(tp_latency *l) { *l = (tp_latency){.full = l->full}; }

/* At most a sixteenth off. */
static void assert_close(tp_time found, tp_time true_one) {
  assert_true(found >= true_one - true_one / 16);
  assert_true(found <= true_one + true_one / 16);
}

static void percentiles_are_close(void **state) {
  (void)state;
  tp_latency *l = empty();
  for (tp_time i = 1; i <= 1000; i++) tp_latency_add(l, i * MS);
  assert_close(tp_latency_at(l, 0.5), 500 * MS);
  assert_close(tp_latency_at(l, 0.95), 950 * MS);
  assert_close(tp_latency_at(l, 0.999), 999 * MS);
  assert_close(tp_latency_at(l, 1), 1000 * MS);
  assert_close(tp_latency_at(l, 1e-9), 1 * MS);
  free(l);
}

static void every_latency_has_its_bucket(void **state) {
  (void)state;
  tp_latency *l = empty();
  for (int bit = 0; bit < 63; bit++) {
    for (tp_time near = -1; near <= 1; near++) {
      tp_time latency = ((tp_time)1 << bit) + near;
      forget(l);
      tp_latency_add(l, latency);
      assert_close(tp_latency_at(l, 0.5), latency);
    }
  }
  forget(l);
  tp_latency_add(l, TP_NEVER);
  assert_true(tp_latency_at(l, 0.5) == TP_NEVER);
  free(l);
}

static void small_ones_are_exact(void **state) {
  (void)state;
  tp_latency *l = empty();
  for (tp_time i = 0; i < 32; i++) tp_latency_add(l, i);
  for (int i = 1; i <= 32; i++) assert_true(tp_latency_at(l, i / 32.0) == i - 1);
  free(l);
}

static void what_is_old_weighs_less(void **state) {
  (void)state;
  tp_latency *l = empty();
  for (int i = 0; i < 100000; i++) tp_latency_add(l, 1000 * MS);
  assert_true(l->count < 4096);
  for (int i = 0; i < 4096; i++) tp_latency_add(l, 10 * MS);
  assert_close(tp_latency_at(l, 0.5), 10 * MS);
  for (int i = 0; i < 20000; i++) tp_latency_add(l, 10 * MS);
  assert_close(tp_latency_at(l, 0.999), 10 * MS);
  free(l);
}

/* Uniform in (0, 1): an additive recurrence with the golden ratio, which is even all the time. */
static double next_share(double *at) {
  *at += 0.6180339887498949;
  if (*at >= 1) *at -= 1;
  return *at;
}

/* How many of `n` more are longer than the percentile that the histogram tells at that time. */
static double share_above(tp_latency *l, double percentile, int n, double (*draw)(double)) {
  double at = 0;
  int above = 0;
  for (int i = 0; i < n; i++) {
    tp_time latency = (tp_time)(draw(next_share(&at)) * (double)MS);
    if (l->count > 500 && latency > tp_latency_at(l, percentile)) above++;
    tp_latency_add(l, latency);
  }
  return (double)above / n;
}

static double even(double share) { return 1 + 99 * share; }
static double long_tailed(double share) { return 1 / sqrt(1 - share); }

static void halving_keeps_the_tail(void **state) {
  (void)state;
  double (*const draws[])(double) = {even, long_tailed};
  for (int i = 0; i < 2; i++) {
    static const double percentiles[] = {0.9, 0.95, 0.99};
    for (int j = 0; j < 3; j++) {
      tp_latency *l = empty();
      l->full = 5000;
      double found = share_above(l, percentiles[j], 100000, draws[i]);
      double wanted = 1 - percentiles[j];
      /* Less where the longest latency is in the middle of a bucket. */
      assert_true(found > 0.45 * wanted && found < 1.1 * wanted);
      free(l);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      {"SG-15 percentiles are at most a sixteenth off", percentiles_are_close, NULL, NULL, NULL},
      {"SG-15 every latency can be measured", every_latency_has_its_bucket, NULL, NULL, NULL},
      {"SG-15 the shortest latencies are exact", small_ones_are_exact, NULL, NULL, NULL},
      {"SG-15 percentiles stay true for as long as latencies come", halving_keeps_the_tail, NULL,
       NULL, NULL},
      {"SG-15 percentiles follow latencies that change", what_is_old_weighs_less, NULL, NULL, NULL},
  };
  return cmocka_run_group_tests_name("latency", tests, NULL, NULL);
}
