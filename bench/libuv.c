/* Timers of libuv without any actors, as an arm of the bench: one handle each, as libuv would have it,
 * on the heap. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <uv.h>

enum { FAILURE = 1, NO_SUCH_WORKLOAD = 3 };

static long fired, cancelled;

static double processor_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static double seconds(void) { return (double)uv_hrtime() / 1e9; }

static double resident(void) {
  size_t bytes;
  return uv_resident_set_memory(&bytes) == 0 ? (double)bytes : 0;
}

static void on_close(uv_handle_t *handle) { free(handle); }

static void on_fire(uv_timer_t *timer) {
  fired++;
  uv_close((uv_handle_t *)timer, on_close);
}

static uv_timer_t *start(uv_loop_t *loop, uint64_t at_least) {
  uv_timer_t *timer = malloc(sizeof *timer);
  if (timer == NULL) exit(FAILURE);
  uv_timer_init(loop, timer);
  uv_timer_start(timer, on_fire, at_least + (uint64_t)(random() % 1001), 0);
  return timer;
}

/* How many fired; *bytes is what each takes. */
static long fire(uv_loop_t *loop, long n, double *bytes) {
  double before = resident();
  for (long i = 0; i < n; i++) start(loop, 0);
  *bytes = (resident() - before) / (double)n;
  uv_run(loop, UV_RUN_DEFAULT);
  return fired;
}

static void cancel(uv_timer_t *timer) {
  if (uv_timer_stop(timer) == 0) cancelled++;
  uv_close((uv_handle_t *)timer, on_close);
}

static long start_and_cancel(uv_loop_t *loop, long n) {
  uv_timer_t **timers = malloc((size_t)n * sizeof *timers);
  if (timers == NULL) exit(FAILURE);
  for (long i = 0; i < n; i++) timers[i] = start(loop, 60000);
  for (long i = 0; i < n; i++) cancel(timers[i]);
  uv_run(loop, UV_RUN_DEFAULT); /* which closes them */
  free(timers);
  return cancelled - fired;
}

int main(int argc, char **argv) {
  const char *workload = argc > 1 ? argv[1] : "";
  long n = argc > 2 ? atol(argv[2]) : 0;
  bool fires = strcmp(workload, "timers-fire") == 0;
  if (!fires && strcmp(workload, "timers-cancel") != 0) {
    fprintf(stderr, "libuv: there is no workload %s\n", workload);
    return NO_SUCH_WORKLOAD;
  }
  if (n < 1) return FAILURE;

  uv_loop_t *loop = uv_default_loop();
  double bytes = 0, began = seconds(), used = processor_seconds();
  srandom(42);
  uv_update_time(loop);
  long handled = fires ? fire(loop, n, &bytes) : start_and_cancel(loop, n);
  printf("handled=%ld seconds=%.9f cpu=%.9f", handled, seconds() - began,
         processor_seconds() - used);
  if (fires) printf(" bytes=%.1f", bytes);
  printf("\n");
  return 0;
}
