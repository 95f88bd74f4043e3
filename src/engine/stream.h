/* Streams: the replies to one message as they come, for a caller that takes them one by one (SG-18).
 *
 * A stream begins with one leg, of whom it asks. A router that passes the message on to several
 * replaces that leg by one for each of them, however deep routers are nested; any other actor answers
 * it as it answers an ask. Legs that have an outcome are queued until they are taken. */
#ifndef TP_STREAM_H
#define TP_STREAM_H

#include "gather.h"

/* Whether `sender` (or NULL) is the leg of a stream that takes all replies, and is not over yet. */
bool tp_stream_asks(const tp_ref *sender);

/* Asks `count` routees (borrowed; at least one) for the stream whose leg is the sender of `e` (taken).
 * Losers are cancelled with the stream if `cancels`. */
void tp_stream_spread(tp_envelope *e, tp_ref *const *routees, size_t count, bool cancels);

/* The same with every routee of `router`, which has some. */
void tp_stream_spread_to_all(tp_actor *router, tp_envelope *e);

/* A leg of a stream has an outcome. */
void tp_stream_leg_settled(tp_slot *leg);

/* The deadline of a stream has passed. */
void tp_stream_expire(tp_gather *g);

/* Fails what is open of every stream of the system with "system-terminated" (SYS-5). */
void tp_streams_terminate(tp_system *s);

/* Drops what every stream holds, without telling anybody: for the end of a system. */
void tp_streams_forget(tp_system *s);

#endif
