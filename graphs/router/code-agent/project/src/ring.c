#include "uart.h"

/* Returns 0 where the ring buffer is full: the byte is lost. */
int ring_put(struct ring *ring, uint8_t byte)
{
    size_t next = (ring->head + 1u) & (RING_SIZE - 1u);
    if (next == ring->tail)
        return 0;
    ring->bytes[ring->head] = byte;
    ring->head = next;
    return 1;
}

int ring_get(struct ring *ring, uint8_t *byte)
{
    if (ring->head == ring->tail)
        return 0;
    *byte = ring->bytes[ring->tail];
    ring->tail = (ring->tail + 1u) & (RING_SIZE - 1u);
    return 1;
}
