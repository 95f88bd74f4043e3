#include "watchdog.h"

#include <stddef.h>

#ifdef __linux__
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#ifndef sigev_notify_thread_id /* of older C libraries */
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { SECOND = 1000000000 };

/* A stretch is looked at this often within the limit, as far as that is within these bounds. */
enum { LOOKS_A_LIMIT = 4 };
static const int64_t SHORTEST_PERIOD = SECOND / 1000, LONGEST_PERIOD = 60ll * SECOND;

/* What a thread has, from its first work to its end. The signal handler runs on the same thread. */
typedef struct worker {
  tp_watchdog *volatile innermost; /* of those at work here */
  volatile bool resting;           /* the timer does not run */
  volatile uint64_t period;        /* of the timer, if it runs */
  bool has_timer;
  timer_t timer;
} worker;

struct tp_watchdog {
  const volatile unsigned *count;
  void (*notice)(void *context);
  void *context;
  uint64_t period, limit_in_periods;
  worker *at;                  /* where it is at work, or NULL */
  tp_watchdog *volatile outer; /* whose work this one's is part of */

  /* Of the signal handler: the stretch seen last, since when, and at how many looks since. */
  unsigned seen;
  uint64_t since, looked, looks;
  volatile unsigned overdue; /* the stretch that was noticed and not taken, or 0 */
};

/* A signal handler has nothing but what is static to find its way by. */
static pthread_key_t here; /* the worker of a thread */
static struct sigaction previous;
static bool prepared;

/* ---- Looking ---------------------------------------------------------------------------- */

static void start_timer(worker *r, uint64_t period) {
  struct itimerspec once = {
      .it_value = {.tv_sec = (time_t)(period / SECOND), .tv_nsec = (long)(period % SECOND)}};
  r->resting = false;
  r->period = period;
  (void)timer_settime(r->timer, 0, &once, NULL);
}

/* Signals that are not the timer's bring it here too, at any time. */
static void look(tp_watchdog *w, uint64_t now) {
  unsigned stretch = *w->count;
  if (stretch != w->seen) {
    w->seen = stretch;
    w->since = w->looked = now;
    w->looks = 0;
  } else if (now - w->looked >= w->period) {
    w->looked = now;
    if (++w->looks != w->limit_in_periods) return;
    w->overdue = stretch;
    w->notice(w->context);
  }
}

static void look_around(worker *r) {
  uint64_t now = uv_hrtime(), period = UINT64_MAX;
  for (tp_watchdog *w = r->innermost; w != NULL; w = w->outer) {
    look(w, now);
    if (w->period < period) period = w->period;
  }
  if (r->innermost != NULL) {
    start_timer(r, period);
  } else {
    r->resting = true;
  }
}

static void on_signal(int number, siginfo_t *info, void *context) {
  int before = errno;
  worker *r = pthread_getspecific(here);
  if (r != NULL) look_around(r);
  errno = before;
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
  }
}

/* ---- What is there for good ------------------------------------------------------------- */

static void free_worker(void *at) {
  worker *r = at;
  if (r->has_timer) (void)timer_delete(r->timer);
  free(r);
}

/* Timers are not inherited. */
static void forget_timer(void) {
  worker *r = pthread_getspecific(here);
  if (r == NULL) return;
  r->has_timer = false;
  r->resting = true;
}

/* Signals, ends of threads and forks may come after the module was unloaded, so its code must stay:
 * the signal handler cannot be taken back, for another one may have been put over it. */
static void keep_code(void) {
  Dl_info module;
  if (dladdr(&here, &module) != 0) {
    (void)dlopen(module.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

static void prepare(void) {
  struct sigaction action = {.sa_sigaction = on_signal,
                             .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
  (void)sigemptyset(&action.sa_mask);
  keep_code();
  prepared = pthread_key_create(&here, free_worker) == 0 &&
             pthread_atfork(NULL, NULL, forget_timer) == 0 &&
             sigaction(SIGURG, NULL, &previous) == 0 && sigaction(SIGURG, &action, NULL) == 0;
}

/* ---- Workers ---------------------------------------------------------------------------- */

static bool have_timer(worker *r) {
  if (r->has_timer) return true;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
  event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
  r->has_timer = timer_create(CLOCK_MONOTONIC, &event, &r->timer) == 0;
  return r->has_timer;
}

/* The worker of this thread; NULL when out of memory. */
static worker *worker_here(void) {
  worker *r = pthread_getspecific(here);
  if (r != NULL) return r;
  r = calloc(1, sizeof *r);
  if (r == NULL) return NULL;
  r->resting = true;
  if (pthread_setspecific(here, r) == 0) return r;
  free(r);
  return NULL;
}

/* ---- Watchdogs -------------------------------------------------------------------------- */

static int64_t period_of(int64_t limit) {
  int64_t period = limit / LOOKS_A_LIMIT;
  if (period < SHORTEST_PERIOD) return SHORTEST_PERIOD;
  return period > LONGEST_PERIOD ? LONGEST_PERIOD : period;
}

tp_watchdog *tp_watchdog_new(const volatile unsigned *count, int64_t limit,
                             void (*notice)(void *context), void *context) {
  static uv_once_t once = UV_ONCE_INIT;
  uv_once(&once, prepare);
  worker *r = prepared ? worker_here() : NULL;
  tp_watchdog *w = r != NULL && have_timer(r) ? calloc(1, sizeof *w) : NULL;
  if (w == NULL) return NULL;
  int64_t period = period_of(limit);
  w->count = count;
  w->notice = notice;
  w->context = context;
  w->period = (uint64_t)period;
  w->limit_in_periods = (uint64_t)((limit - 1) / period + 1);
  return w;
}

void tp_watchdog_free(tp_watchdog *w) {
  if (w == NULL) return;
  if (w->at != NULL) {
    tp_watchdog *volatile *link = &w->at->innermost;
    while (*link != w) link = &(*link)->outer;
    *link = w->outer;
  }
  free(w);
}

void tp_watchdog_begin(tp_watchdog *w) {
  if (w == NULL) return;
  worker *r = worker_here();
  w->at = r;
  if (r == NULL) return;
  w->outer = r->innermost;
  r->innermost = w; /* before the timer is looked at, which this keeps going */
  if ((r->resting || r->period > w->period) && have_timer(r)) start_timer(r, w->period);
}

void tp_watchdog_end(tp_watchdog *w) {
  if (w == NULL || w->at == NULL) return;
  w->at->innermost = w->outer;
  w->at = NULL;
}

int64_t tp_watchdog_take(tp_watchdog *w) {
  if (w == NULL || w->at == NULL || w->overdue == 0 || w->overdue != *w->count) return 0;
  w->overdue = 0;
  return (int64_t)(uv_hrtime() - w->since);
}

#else

tp_watchdog *tp_watchdog_new(const volatile unsigned *count, int64_t limit,
                             void (*notice)(void *context), void *context) {
  (void)count, (void)limit, (void)notice, (void)context;
  return NULL;
}

void tp_watchdog_free(tp_watchdog *w) { (void)w; }
void tp_watchdog_begin(tp_watchdog *w) { (void)w; }
void tp_watchdog_end(tp_watchdog *w) { (void)w; }

int64_t tp_watchdog_take(tp_watchdog *w) {
  (void)w;
  return 0;
}

#endif
