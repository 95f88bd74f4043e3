/* Notices a stretch of work that takes too long while it is going on, an endless loop too.
 *
 * Whoever works counts the stretches that it begins, and says when it begins and ends to work at all.
 * In between, a timer of its thread makes a signal a few times within the limit, and the signal's
 * handler looks at the count. When it finds the same stretch again and again it says so, once. Once
 * nobody works, the timer fires one more time and then no more. There is no thread, since the C
 * library's malloc is slower in a process that has two.
 *
 * The signal is SIGURG, which does nothing to a process that has not asked for it. A handler that was
 * there before is called as well. Only Linux has timers that signal one thread; elsewhere there are
 * no watchdogs. */
#ifndef TP_WATCHDOG_H
#define TP_WATCHDOG_H

#include <stdint.h>

typedef struct tp_watchdog tp_watchdog;

/* Watches the stretches that `count` (borrowed) counts. When one has run for `limit` nanoseconds,
 * `notice` is called with `context` on the thread that works, in a signal handler: it may do little
 * more than leave a note. NULL when out of memory or of timers. */
tp_watchdog *tp_watchdog_new(const volatile unsigned *count, int64_t limit,
                             void (*notice)(void *context), void *context);

/* Also while it is at work. This and all below do nothing to NULL. */
void tp_watchdog_free(tp_watchdog *w);

/* The calling thread works from now on, until it ends that. Works of several watchdogs nest. */
void tp_watchdog_begin(tp_watchdog *w);
void tp_watchdog_end(tp_watchdog *w);

/* For how many nanoseconds, at least, the stretch that runs has run, once that has been noticed; 0
 * before that, and when it was asked before. */
int64_t tp_watchdog_take(tp_watchdog *w);

#endif
