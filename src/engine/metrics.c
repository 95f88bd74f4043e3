#include "metrics.h"

#include <assert.h>
#include <string.h>

const char *const tp_dead_letter_reasons[TP_DEAD_LETTER_REASONS] = {
    "stopped",    "unresolved",     "restarted",         "mailbox-full",
    "no-routees", "strategy-error", "system-terminated", "out-of-memory"};

const tp_time tp_histogram_bounds[TP_HISTOGRAM_BOUNDS] = {
    100000,   250000,    500000,    1000000,   2500000,    5000000,    10000000,   25000000,
    50000000, 100000000, 250000000, 500000000, 1000000000, 2500000000, 5000000000, 10000000000};

static void observe(tp_histogram *h, tp_time value) {
  uint32_t i = 0;
  while (i < TP_HISTOGRAM_BOUNDS && value > tp_histogram_bounds[i]) i++;
  h->counts[i]++;
  h->sum += (uint64_t)value;
}

void tp_count_dead_letter(tp_system *s, const char *reason) {
  if (s->metrics == NULL) return;
  uint32_t i = 0;
  while (i < TP_DEAD_LETTER_REASONS && strcmp(tp_dead_letter_reasons[i], reason) != 0) i++;
  assert(i < TP_DEAD_LETTER_REASONS);
  if (i < TP_DEAD_LETTER_REASONS) s->metrics->dead_letters[i]++;
}

void tp_metrics_gathered(tp_system *s, tp_time latency) {
  if (s->metrics != NULL) observe(&s->metrics->gathered, latency);
}

const tp_metrics *tp_system_metrics(const tp_system *s) { return s->metrics; }

void tp_metrics_delivered(tp_system *s) { tp_count(s, TP_COUNT_DELIVERED); }

void tp_metrics_handled(tp_system *s, tp_time took) {
  if (s->metrics != NULL) observe(&s->metrics->handled, took);
}
