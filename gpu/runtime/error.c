/* The message of the last failure, and the interrupt flag. */
#include "core.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[512];
volatile int gpu_interrupt_flag;

const char *gpu_message(void)
{
    return message;
}

gpu_status gpu_fail(gpu_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return status;
}

void gpu_interrupt(void)
{
    gpu_interrupt_flag = 1;
}

void gpu_clear_interrupt(void)
{
    gpu_interrupt_flag = 0;
}

int gpu_is_interrupted(void)
{
    return gpu_interrupt_flag != 0;
}

gpu_status gpu_poll(void)
{
    if (gpu_interrupt_flag)
        return gpu_fail(GPU_INTERRUPTED, "interrupted");
    return GPU_OK;
}

const char *gpu_shape_text(const gpu_matrix *m)
{
    static char ring[4][48];
    static int next;
    char *text = ring[next++ & 3];
    if (m->ndim == 1)
        snprintf(text, sizeof ring[0], "vector %lld", (long long)m->rows);
    else
        snprintf(text, sizeof ring[0], "%lldx%lld", (long long)m->rows,
                 (long long)m->cols);
    return text;
}

const char *gpu_bytes_text(size_t bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    static char ring[4][24];
    static int next;
    char *text = ring[next++ & 3];
    double value = (double)bytes;
    int u = 0;
    for (; value >= 1024 && u < 5; u++)
        value /= 1024;
    snprintf(text, sizeof ring[0], u == 0 ? "%.0f %s" : "%.1f %s", value,
             unit[u]);
    return text;
}

gpu_status gpu_fail_unread(void)
{
    return gpu_fail(GPU_UNSUPPORTED,
                    "what is done depends on elements: it has to be run");
}
