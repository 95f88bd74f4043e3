/* The C library's heap, as the machine gives it. A page that is touched for the first time costs an
 * interrupt, which on a virtual machine may take longer than all that is then done in the page. */
#ifndef TP_HEAP_H
#define TP_HEAP_H

/* Asks for all pages that the heap has grown by since this thread was here last, at once: to be called
 * where many small blocks are made. Costs next to nothing when it has not grown. */
void tp_heap_map(void);

#endif
