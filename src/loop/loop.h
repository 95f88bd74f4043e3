/* The event loop of a system: the clock, and sleeping until a deadline. The one place that knows
 * libuv; this header does not show it. */
#ifndef TP_LOOP_H
#define TP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tp_loop tp_loop;

/* Gives a loop of its own, never the host's; NULL when the machine has none to give. */
tp_loop *tp_loop_new(void);

void tp_loop_free(tp_loop *l);

/* Nanoseconds on a monotonic clock. */
int64_t tp_clock_monotonic(void);

/* Seconds since 1970. */
double tp_clock_wall(void);

/* Unpredictable bits, for seeds. */
uint64_t tp_entropy(void);

/* Lets I/O and signals have their turn, without sleeping. */
void tp_loop_poll(tp_loop *l);

/* Sleeps until something happens or `timeout` nanoseconds have passed, whichever comes first; perhaps
 * up to a millisecond less than that. */
void tp_loop_wait(tp_loop *l, int64_t timeout);

#endif
