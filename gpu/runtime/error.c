/* The message of the last failure, and the interrupt flag. */
#include "core.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* --- amounts as text ------------------------------------------------------ */

enum { TEXT = 48 };

/* That of the eighth text before, which is written over. */
static char *next_text(void)
{
    static char ring[8][TEXT];
    static int next;
    return ring[next++ & 7];
}

const char *gpu_size_text(int64_t rows, int64_t cols)
{
    char *text = next_text();
    snprintf(text, TEXT, "%lldx%lld", (long long)rows, (long long)cols);
    return text;
}

const char *gpu_shape_text(const gpu_matrix *m)
{
    if (m->ndim != 1)
        return gpu_size_text(m->rows, m->cols);
    char *text = next_text();
    snprintf(text, TEXT, "vector %lld", (long long)m->rows);
    return text;
}

const gpu_units gpu_byte_units = {1024,
                                  {"B", "KiB", "MiB", "GiB", "TiB", "PiB"}};

/* A number in text, with the digits that are asked for and no exponent unless
 * it is huge. */
static void write_number(char *text, double x, int digits)
{
    int is_huge = !(x < 1e15);
    if (digits < 0 && !is_huge)
        snprintf(text, TEXT, "%.*f", -digits, x);
    else
        snprintf(text, TEXT, "%.*g", digits < 0 ? 3 : digits, x);
    if (!is_huge && strstr(text, "e+"))
        snprintf(text, TEXT, "%.0f", x);
}

const char *gpu_amount_text(double x, const gpu_units *units, int digits)
{
    char *text = next_text();
    int unit = 0;
    write_number(text, x, digits);
    while (units->names[unit + 1] && strtod(text, NULL) >= units->step) {
        x /= units->step;
        write_number(text, x, digits);
        unit++;
    }
    if (unit == 0 && x == floor(x))
        snprintf(text, TEXT, "%.0f", x);
    size_t length = strlen(text);
    snprintf(text + length, TEXT - length, " %s", units->names[unit]);
    return text;
}

const char *gpu_bytes_text(size_t bytes)
{
    return gpu_amount_text((double)bytes, &gpu_byte_units, -1);
}

gpu_status gpu_fail_unread(void)
{
    return gpu_fail(GPU_UNSUPPORTED,
                    "what is done depends on elements: it has to be run");
}
