#include "uart.h"

static uint8_t in_use[DMA_DESCRIPTORS];

/* Gives a free descriptor, or -1 where all are in use. */
int dma_take(void)
{
    for (unsigned i = 0; i < DMA_DESCRIPTORS; i++) {
        if (!in_use[i]) {
            in_use[i] = 1u;
            return (int)i;
        }
    }
    return -1;
}

void dma_release(int descriptor)
{
    in_use[descriptor] = 0u;
}
