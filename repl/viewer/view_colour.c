/* Colours of the viewer: what stands out in print, and heat. */
#include "view_parts.h"

#include <math.h>

/* Colours of the 256 of xterm, from cold to hot: over a range that has both
 * signs the middle is zero; else one hue follows another, ever lighter. */
static const short diverging[] = {18,  20,  26,  32,  74,  110, 153, 254,
                                  224, 217, 210, 203, 196, 160, 124};
static const short rising[] = {17, 18, 19,  25,  31,  37,  36, 35,
                               41, 77, 113, 149, 185, 221, 227};
static const short few[] = {COLOR_BLUE, COLOR_CYAN, COLOR_GREEN, COLOR_YELLOW,
                            COLOR_RED};
enum { STEPS = sizeof rising / sizeof rising[0] };
enum { FEW = sizeof few / sizeof few[0] };
enum { RED = 1, YELLOW, HEAT, RISING = HEAT, DIVERGING = HEAT + STEPS };

int view_has_colours(void)
{
    return COLORS >= 8 && COLOR_PAIRS > DIVERGING;
}

static int is_rich(void)
{
    return COLORS >= 256 && COLOR_PAIRS > DIVERGING + STEPS;
}

/* Of a colour of the cube of 6x6x6 or the grey ramp: is black on it better to
 * read than white? */
static int is_light(short colour)
{
    int n = colour - 16, red = n / 36, green = n / 6 % 6, blue = n % 6;
    if (colour >= 232)
        return colour >= 244;
    return 3 * red + 6 * green + blue > 22;
}

static void open_rich(short first, const short *colours)
{
    for (short i = 0; i < STEPS; i++)
        init_pair((short)(first + i), is_light(colours[i]) ? 16 : 231,
                  colours[i]);
}

void view_open_colours(void)
{
    if (!view_has_colours())
        return;
    init_pair(RED, COLOR_RED, -1);
    init_pair(YELLOW, COLOR_YELLOW, -1);
    if (is_rich()) {
        open_rich(RISING, rising);
        open_rich(DIVERGING, diverging);
        return;
    }
    for (short i = 0; i < FEW; i++)
        init_pair((short)(HEAT + i), COLOR_BLACK, few[i]);
}

/* Where x lies between low and high, in 0 … 1; a range over zero is taken the
 * same way to both sides. */
static double share_of(const view *v, double x)
{
    double low = v->low, high = v->high;
    if (low < 0 && high > 0) {
        high = fmax(high, -low);
        low = -high;
    }
    if (isinf(x))
        return x > 0;
    if (high / 2 - low / 2 <= 0)
        return 0.5;
    return (x / 2 - low / 2) / (high / 2 - low / 2);
}

static int heat_pair(const view *v, double x)
{
    int steps = is_rich() ? STEPS : FEW;
    int step = (int)floor(share_of(v, x) * steps);
    step = step < 0 ? 0 : step < steps ? step : steps - 1;
    if (!is_rich())
        return HEAT + step;
    return (v->low < 0 && v->high > 0 ? DIVERGING : RISING) + step;
}

attr_t view_attribute(const view *v, const lumat_cell *cell)
{
    double x = cell->value;
    int colours = view_has_colours();
    attr_t red = colours ? (attr_t)COLOR_PAIR(RED) : A_NORMAL;
    if (isnan(x))
        return A_BOLD | red;
    if (v->heat)
        return COLOR_PAIR(heat_pair(v, x));
    if (isinf(x))
        return colours ? (attr_t)COLOR_PAIR(YELLOW) : A_NORMAL;
    return x == 0 ? A_DIM : A_NORMAL;
}
