#include "uart.h"

static struct ring received;
static uint32_t overruns;

extern void write_register(uint32_t offset, uint32_t value);
extern uint32_t fifo_level(void);
extern uint8_t fifo_pop(void);

void uart_init(void)
{
    write_register(0x00u, UART_BAUD_RATE);
    write_register(0x04u, UART_FIFO_THRESHOLD);
}

/* Empties the FIFO into the ring buffer; without a free descriptor the bytes stay where they are. */
void uart_interrupt(void)
{
    int descriptor = dma_take();
    if (descriptor < 0) {
        overruns++;
        return;
    }
    while (fifo_level() > 0u) {
        if (!ring_put(&received, fifo_pop()))
            overruns++;
    }
    dma_release(descriptor);
}
