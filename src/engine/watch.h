/* Death watch (WATCH-1 .. WATCH-6; the idea is Erlang's monitors).
 *
 * A watch stands in two lists: of who watches, and of who is watched. When the target has stopped,
 * its notice goes into the watcher's mailbox, behind all that the target had told before. What is
 * queued there is the watch itself, so that unwatch can take it back. Watches are kept over
 * restarts and end with either side. A slot can watch too: somebody waits for the end. */
#ifndef TP_WATCH_H
#define TP_WATCH_H

#include "actor.h"
#include "list.h"

struct tp_watch_notice {
  uint32_t count;
  bool active;           /* neither taken back nor delivered */
  bool custom;           /* `message` stands for the notice */
  tp_actor *watcher;     /* NULL: `slot` watches */
  tp_watch_notice *next; /* in its bucket, while active, if an actor watches */
  tp_ref *slot;          /* counted */
  tp_actor *target;      /* counted */
  tp_link mine;          /* in the watcher's list, while active */
  tp_link theirs; /* in the target's list, while it lives; in the system's, while memory is out */
  tp_value message;
};

void tp_notice_retain(tp_watch_notice *n);
void tp_notice_release(tp_watch_notice *n);

/* The slot that watched has settled. */
void tp_watch_settled(tp_watch_notice *n);

/* The notice is taken up: true and `out` (to be released) when it counts. */
bool tp_notice_take(tp_watch_notice *n, tp_value *out);

/* An actor has stopped: tells those who watch it. */
void tp_watchers_tell(tp_actor *a);

/* Ends the watches of an actor that has stopped, and those on it, without telling anybody. */
void tp_watches_end(tp_actor *a);

/* Frees the table of watches. */
void tp_watches_fini(tp_system *s);

/* Tells what could not be told for want of memory. */
void tp_watches_retry(tp_system *s);

#endif
