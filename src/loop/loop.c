#include "loop.h"

#include <stdlib.h>
#include <time.h>
#include <uv.h>

enum { MILLISECOND = 1000000 };

struct tp_loop {
  uv_loop_t uv;
  uv_timer_t timer;
};

/* uv_run may serve the timer before it sleeps; without this it would then sleep all the same. */
static void on_timer(uv_timer_t *t) { uv_stop(t->loop); }

tp_loop *tp_loop_new(void) {
  tp_loop *l = calloc(1, sizeof *l);
  if (l == NULL) return NULL;
  if (uv_loop_init(&l->uv) != 0) {
    free(l);
    return NULL;
  }
  (void)uv_timer_init(&l->uv, &l->timer); /* it cannot fail */
  return l;
}

void tp_loop_free(tp_loop *l) {
  if (l == NULL) return;
  uv_close((uv_handle_t *)&l->timer, NULL);
  (void)uv_run(&l->uv, UV_RUN_DEFAULT); /* closing handles takes a turn */
  (void)uv_loop_close(&l->uv);
  free(l);
}

int64_t tp_clock_monotonic(void) { return (int64_t)uv_hrtime(); }

double tp_clock_wall(void) {
  uv_timeval64_t now;
  if (uv_gettimeofday(&now) != 0) return 0;
  return (double)now.tv_sec + (double)now.tv_usec / 1e6;
}

uint64_t tp_entropy(void) {
  uint64_t bits;
  if (uv_random(NULL, NULL, &bits, sizeof bits, 0, NULL) == 0) return bits;
  return uv_hrtime() ^ (uint64_t)uv_os_getpid() << 32;
}

void tp_loop_poll(tp_loop *l) { (void)uv_run(&l->uv, UV_RUN_NOWAIT); }

/* libuv counts whole milliseconds; the rest is slept without it, or deadlines would be served up to a
 * millisecond late. */
static void sleep_fraction(int64_t timeout) {
  struct timespec rest = {.tv_sec = 0, .tv_nsec = (long)timeout};
  (void)nanosleep(&rest, NULL);
}

void tp_loop_wait(tp_loop *l, int64_t timeout) {
  uint64_t milliseconds = (uint64_t)timeout / MILLISECOND;
  if (milliseconds == 0) {
    tp_loop_poll(l);
    sleep_fraction(timeout);
    return;
  }
  uv_update_time(&l->uv);
  (void)uv_timer_start(&l->timer, on_timer, milliseconds, 0);
  (void)uv_run(&l->uv, UV_RUN_ONCE);
  (void)uv_timer_stop(&l->timer);
}
