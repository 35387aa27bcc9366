/* Which of Lua's floats came out of f32 matrices during an entry. A number of
 * Lua's carries no type, so it is known again by its value: 0.1 as an f32 is no
 * double that one would write. */
#include "matrix.h"

#include <string.h>

/* Each value in the one slot that its bits lead to, without its sign; what
 * comes later takes the place of what was there. Zero means empty. */
enum { SLOT_BITS = 10, SLOTS = 1 << SLOT_BITS };
static uint32_t slots[SLOTS];
static int are_empty = 1;

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x7FFFFFFFu;
}

/* Source: Knuth, The Art of Computer Programming 3, 6.4: multiplicative
 * hashing. */
static uint32_t slot_of(uint32_t bits)
{
    return bits * 2654435769u >> (32 - SLOT_BITS);
}

void lumat_note_scalar(gpu_dtype dtype, double value)
{
    if (dtype != GPU_F32 || (double)(float)value != value)
        return;
    uint32_t bits = bits_of((float)value);
    slots[slot_of(bits)] = bits;
    are_empty = 0;
}

int lumat_is_single(double value)
{
    if ((double)(float)value != value)
        return 0;
    uint32_t bits = bits_of((float)value);
    return slots[slot_of(bits)] == bits;
}

void lumat_forget_scalars(void)
{
    if (!are_empty)
        memset(slots, 0, sizeof slots);
    are_empty = 1;
}
