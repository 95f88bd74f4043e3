/* Groups: routers whose routees are actors that exist, known by ref or by path (RTR-17).
 *
 * A group owns nobody: it stops and restarts without its members. Who of them gets mail is worked
 * out anew when an actor of the system has been spawned or takes no more mail, so that a message
 * costs two comparisons otherwise. */
#ifndef TP_GROUP_H
#define TP_GROUP_H

#include "router.h"

/* Finds the routees of a new incarnation. */
void tp_group_fill(tp_actor *group);

/* Makes the routees of a group those of its members that take mail now. */
void tp_group_look(tp_actor *group);

#endif
