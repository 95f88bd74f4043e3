/* A machine that stands still, preloaded into what is counted so that the counts are the same each
 * time. Time goes on by a microsecond whenever somebody looks at it, and by a wait when somebody
 * waits, which takes no time. Chance is always the same, and no timer sends signals. */
#include <dlfcn.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>
#include <uv.h>

enum { LOOK = 1000, MICROSECOND = 1000, MILLISECOND = 1000000, SECOND = 1000000000 };

static int64_t now = SECOND; /* in nanoseconds */

int clock_gettime(clockid_t clock, struct timespec *t) {
  (void)clock;
  now += LOOK;
  *t = (struct timespec){.tv_sec = now / SECOND, .tv_nsec = now % SECOND};
  return 0;
}

/* Lua takes the seed of its hashes from it. */
time_t time(time_t *t) {
  if (t != NULL) *t = now / SECOND;
  return now / SECOND;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  (void)zone;
  *t = (struct timeval){.tv_sec = now / SECOND, .tv_usec = now % SECOND / MICROSECOND};
  return 0;
}

int nanosleep(const struct timespec *duration, struct timespec *rest) {
  (void)rest;
  now += duration->tv_sec * SECOND + duration->tv_nsec;
  return 0;
}

int epoll_pwait(int fd, struct epoll_event *events, int count, int timeout, const sigset_t *mask) {
  (void)fd, (void)events, (void)count, (void)mask;
  if (timeout > 0) now += (int64_t)timeout * MILLISECOND;
  return 0;
}

int epoll_wait(int fd, struct epoll_event *events, int count, int timeout) {
  return epoll_pwait(fd, events, count, timeout, NULL);
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict new,
                  struct itimerspec *restrict old) {
  (void)timer, (void)flags, (void)new, (void)old;
  return 0;
}

int uv_random(uv_loop_t *loop, uv_random_t *request, void *bytes, size_t count, unsigned flags,
              uv_random_cb done) {
  (void)loop, (void)request, (void)flags, (void)done;
  memset(bytes, 1, count);
  return 0;
}

/* What is unloaded before the end, its lines are not known any more. */
int dlclose(void *library) {
  (void)library;
  return 0;
}
