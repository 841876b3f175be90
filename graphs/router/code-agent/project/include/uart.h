#ifndef UART_H
#define UART_H

#include <stddef.h>
#include <stdint.h>

#define UART_BAUD_RATE 921600u
/* The interrupt comes when this many of 16 bytes are in the FIFO. */
#define UART_FIFO_THRESHOLD 14u
#define DMA_DESCRIPTORS 4u
/* A power of two, so that positions can be masked. */
#define RING_SIZE 256u

struct ring {
    uint8_t bytes[RING_SIZE];
    size_t head;
    size_t tail;
};

void uart_init(void);
void uart_interrupt(void);
int dma_take(void);
void dma_release(int descriptor);
int ring_put(struct ring *ring, uint8_t byte);
int ring_get(struct ring *ring, uint8_t *byte);

#endif
