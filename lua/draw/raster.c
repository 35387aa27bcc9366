/* Pictures of pixels: what charts are drawn on for .png files and for terminals
 * that show pictures. Lines and areas are smooth at their edges: a pixel has as
 * much of the colour as they cover of it. What a picture is called with are
 * pixels from the top left; nothing outside is drawn, whatever it is called
 * with. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "lauxlib.h"
#include "picture.h"
#include "value.h"

enum { MOST_PIXELS = 1 << 26, MOST_EDGE = 20000 };

typedef struct raster {
    int width, height;
    int left, top, right, bottom; /* of what may be drawn; right is outside */
    float *cover; /* of the shape that is drawn: width x height, from 0 to 1 */
    unsigned char *pixels; /* 3 bytes each */
} raster;

static const char RASTER[] = "lumat.raster";

static raster *check_raster(lua_State *L)
{
    return luaL_checkudata(L, 1, RASTER);
}

static lumat_rgb check_colour(lua_State *L, int arg)
{
    const char *text = luaL_checkstring(L, arg);
    char *end = NULL;
    long value = text[0] == '#' ? strtol(text + 1, &end, 16) : -1;
    luaL_argcheck(L, end && end == text + 7 && !*end, arg, "no colour #rrggbb");
    return (lumat_rgb){(unsigned char)(value >> 16),
                       (unsigned char)(value >> 8), (unsigned char)value};
}

int lumat_new_raster(lua_State *L)
{
    lua_Integer width = luaL_checkinteger(L, 1);
    lua_Integer height = luaL_checkinteger(L, 2);
    lumat_rgb c = check_colour(L, 3);
    luaL_argcheck(L, width >= 1 && width <= MOST_EDGE, 1, "no width");
    luaL_argcheck(L, height >= 1 && height <= MOST_EDGE, 2, "no height");
    luaL_argcheck(L, width * height <= MOST_PIXELS, 2, "too many pixels");
    size_t count = (size_t)(width * height);
    raster *r = lua_newuserdatauv(
        L, sizeof *r + count * (sizeof(float) + sizeof(lumat_rgb)), 0);
    *r = (raster){.width = (int)width, .height = (int)height};
    r->right = r->width;
    r->bottom = r->height;
    r->cover = (float *)(r + 1);
    r->pixels = (unsigned char *)(r->cover + count);
    memset(r->cover, 0, count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        memcpy(r->pixels + 3 * i, &c, 3);
    luaL_setmetatable(L, RASTER);
    return 1;
}

/* r:clip(x, y, width, height), or the whole picture */
static int clip(lua_State *L)
{
    raster *r = check_raster(L);
    double x = luaL_optnumber(L, 2, 0), y = luaL_optnumber(L, 3, 0);
    double right = x + luaL_optnumber(L, 4, r->width);
    double bottom = y + luaL_optnumber(L, 5, r->height);
    r->left = (int)fmin(fmax(floor(x), 0), r->width);
    r->top = (int)fmin(fmax(floor(y), 0), r->height);
    r->right = (int)fmin(fmax(ceil(right), 0), r->width);
    r->bottom = (int)fmin(fmax(ceil(bottom), 0), r->height);
    return 0;
}

/* --- covering --------------------------------------------------------------
 * A shape is laid into `cover`, within a box, and then painted. */

typedef struct box { /* pixels; right and bottom are outside */
    int left, top, right, bottom;
} box;

/* low .. high; what is no number is low. */
static int cut_to(double x, int low, int high)
{
    return !(x > low) ? low : x >= high ? high : (int)x;
}

/* The pixels around from .. to, as far as they may be drawn. */
static box box_of(const raster *r, double x1, double y1, double x2, double y2)
{
    return (box){cut_to(floor(fmin(x1, x2)), r->left, r->right),
                 cut_to(floor(fmin(y1, y2)), r->top, r->bottom),
                 cut_to(ceil(fmax(x1, x2)) + 1, r->left, r->right),
                 cut_to(ceil(fmax(y1, y2)) + 1, r->top, r->bottom)};
}

static void join(box *all, box b)
{
    if (b.left >= b.right || b.top >= b.bottom)
        return;
    if (all->left >= all->right) {
        *all = b;
        return;
    }
    all->left = b.left < all->left ? b.left : all->left;
    all->top = b.top < all->top ? b.top : all->top;
    all->right = b.right > all->right ? b.right : all->right;
    all->bottom = b.bottom > all->bottom ? b.bottom : all->bottom;
}

/* Paints what is covered inside the box, and uncovers it. */
static void paint(raster *r, box b, lumat_rgb c, double opacity)
{
    const double ink[] = {c.red, c.green, c.blue};
    for (int y = b.top; y < b.bottom; y++)
        for (int x = b.left; x < b.right; x++) {
            float *cover = &r->cover[(size_t)y * (size_t)r->width + (size_t)x];
            double share = fmin(*cover, 1) * opacity;
            *cover = 0;
            if (share <= 0)
                continue;
            unsigned char *p =
                &r->pixels[3 * ((size_t)y * (size_t)r->width + (size_t)x)];
            for (int k = 0; k < 3; k++)
                p[k] = (unsigned char)lround(p[k] + share * (ink[k] - p[k]));
        }
}

/* A line with round ends: a pixel is covered by how near it is. */
static box cover_line(raster *r, const double *a, const double *b, double half)
{
    double dx = b[0] - a[0], dy = b[1] - a[1], length = dx * dx + dy * dy;
    box around =
        box_of(r, fmin(a[0], b[0]) - half - 1, fmin(a[1], b[1]) - half - 1,
               fmax(a[0], b[0]) + half + 1, fmax(a[1], b[1]) + half + 1);
    for (int y = around.top; y < around.bottom; y++) {
        double py = y + 0.5 - a[1];
        int from = around.left, to = around.right;
        if (fabs(dy) > 1e-9) {
            /* of a long line only what is near it in this row */
            double room = (half + 1) * sqrt(length) / fabs(dy);
            double at = a[0] + dx * py / dy;
            double first = fmin(a[0], b[0]) - half - 1;
            double last = fmax(a[0], b[0]) + half + 1;
            from = cut_to(floor(fmax(at - room, first)), from, to);
            to = cut_to(ceil(fmin(at + room, last)) + 1, from, to);
        }
        for (int x = from; x < to; x++) {
            double px = x + 0.5 - a[0];
            double t = length > 0 ? (px * dx + py * dy) / length : 0;
            t = fmin(fmax(t, 0), 1);
            double far = hypot(px - t * dx, py - t * dy);
            /* a line thinner than a pixel is lighter, not narrower */
            double share = fmin(fmax(half + 0.5 - far, 0), fmin(2 * half, 1));
            float *cover = &r->cover[(size_t)y * (size_t)r->width + (size_t)x];
            *cover = fmaxf(*cover, (float)share);
        }
    }
    return around;
}

enum { FARTHEST = 1 << 24 }; /* pixels: what lies beyond is drawn there */

/* Of numbers that are finite, a place whose square is one, too. */
static void take_point(const double *at, double out[2])
{
    for (int k = 0; k < 2; k++)
        out[k] = fmin(fmax(at[k], -FARTHEST), FARTHEST);
}

/* r:stroke(points, width, colour, opacity): lines through {x, y, x, y …},
 * which what is no number breaks; a point between two breaks is a dot. */
static int stroke(lua_State *L)
{
    raster *r = check_raster(L);
    int64_t count;
    const double *at = lumat_check_numbers(L, 2, &count);
    double half = fmin(fmax(luaL_checknumber(L, 3) / 2, 0), MOST_EDGE);
    lumat_rgb c = check_colour(L, 4);
    double opacity = luaL_optnumber(L, 5, 1);
    double before[2], here[2];
    int drawn = 0; /* points since the last break */
    box all = {0};
    for (int64_t i = 0; i + 1 < count; i += 2) {
        int is_there = isfinite(at[i]) && isfinite(at[i + 1]);
        int is_last = i + 3 >= count;
        if (is_there) {
            take_point(&at[i], here);
            if (drawn > 0)
                join(&all, cover_line(r, before, here, half));
            memcpy(before, here, sizeof before);
            drawn++;
        }
        if (drawn == 1 && (!is_there || is_last))
            join(&all, cover_line(r, before, before, half));
        drawn = is_there ? drawn : 0;
    }
    paint(r, all, c, opacity);
    return 0;
}

/* --- areas ------------------------------------------------------------------
 */

enum { ROWS_A_PIXEL = 4 };

/* How much of each pixel of a row lies from x1 to x2 is added. */
static void cover_span(raster *r, int y, double x1, double x2, double share)
{
    x1 = fmax(x1, r->left);
    x2 = fmin(x2, r->right);
    float *row = &r->cover[(size_t)y * (size_t)r->width];
    for (int x = cut_to(x1, r->left, r->right); x < x2 && x < r->right; x++)
        row[x] += (float)(share * (fmin(x2, x + 1) - fmax(x1, x)));
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* r:fill(points, colour, opacity): the inside of {x, y, x, y …}, which is
 * closed; where it lies over itself every other part. */
static int fill(lua_State *L)
{
    raster *r = check_raster(L);
    int64_t count;
    const double *at = lumat_check_numbers(L, 2, &count);
    lumat_rgb c = check_colour(L, 3);
    double opacity = luaL_optnumber(L, 4, 1);
    double low = INFINITY, high = -INFINITY, left = low, right = high;
    int64_t points = count / 2;
    double *cuts = lumat_new_numbers(L, points);
    for (int64_t i = 0; i < points; i++) {
        if (!isfinite(at[2 * i]) || !isfinite(at[2 * i + 1]))
            return 0;
        left = fmin(left, at[2 * i]);
        right = fmax(right, at[2 * i]);
        low = fmin(low, at[2 * i + 1]);
        high = fmax(high, at[2 * i + 1]);
    }
    if (points < 3)
        return 0;
    box b = box_of(r, left, low, right, high);
    for (int line = b.top * ROWS_A_PIXEL; line < b.bottom * ROWS_A_PIXEL;
         line++) {
        double y = (line + 0.5) / ROWS_A_PIXEL;
        int found = 0;
        for (int64_t i = 0; i < points; i++) {
            const double *p = &at[2 * i], *q = &at[2 * ((i + 1) % points)];
            if ((p[1] <= y) != (q[1] <= y))
                cuts[found++] =
                    p[0] + (y - p[1]) / (q[1] - p[1]) * (q[0] - p[0]);
        }
        qsort(cuts, (size_t)found, sizeof *cuts, by_size);
        for (int i = 0; i + 1 < found; i += 2)
            cover_span(r, line / ROWS_A_PIXEL, cuts[i], cuts[i + 1],
                       1.0 / ROWS_A_PIXEL);
    }
    paint(r, b, c, opacity);
    return 0;
}

/* r:put(x, y, width, height, rows, cols, rgb): cells of three bytes each, row
 * by row from the top, over that rectangle. */
static int put(lua_State *L)
{
    raster *r = check_raster(L);
    double x1 = luaL_checknumber(L, 2), y1 = luaL_checknumber(L, 3);
    double width = luaL_checknumber(L, 4), height = luaL_checknumber(L, 5);
    lua_Integer rows = luaL_checkinteger(L, 6), cols = luaL_checkinteger(L, 7);
    size_t length;
    const char *cells = luaL_checklstring(L, 8, &length);
    luaL_argcheck(L,
                  rows > 0 && cols > 0 && rows < MOST_PIXELS &&
                      cols < MOST_PIXELS &&
                      length == 3 * (size_t)rows * (size_t)cols,
                  8, "not 3 bytes a cell");
    if (!(width > 0 && height > 0))
        return 0;
    int top = cut_to(round(y1), r->top, r->bottom);
    int bottom = cut_to(round(y1 + height), r->top, r->bottom);
    int left = cut_to(round(x1), r->left, r->right);
    int right = cut_to(round(x1 + width), r->left, r->right);
    for (int y = top; y < bottom; y++) {
        int row =
            cut_to((y + 0.5 - y1) / height * (double)rows, 0, (int)rows - 1);
        for (int x = left; x < right; x++) {
            int col =
                cut_to((x + 0.5 - x1) / width * (double)cols, 0, (int)cols - 1);
            memcpy(&r->pixels[3 * ((size_t)y * (size_t)r->width + (size_t)x)],
                   &cells[3 * ((size_t)row * (size_t)cols + (size_t)col)], 3);
        }
    }
    return 0;
}

/* --- files ------------------------------------------------------------------
 */

/* Pushes the bytes compressed. */
static void push_deflated(lua_State *L, const void *data, size_t length)
{
    luaL_Buffer b;
    uLongf room = compressBound((uLong)length);
    char *out = luaL_buffinitsize(L, &b, room);
    if (compress2((Bytef *)out, &room, data, (uLong)length, 6) != Z_OK)
        luaL_error(L, "there is no memory to compress a picture");
    luaL_pushresultsize(&b, room);
}

int lumat_deflate(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    push_deflated(L, text, length);
    return 1;
}

static void put_big(unsigned char out[4], uint32_t x)
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(x >> (24 - 8 * i));
}

/* A part of a PNG file: length, name, data, and a sum of the last two. Source:
 * ISO/IEC 15948. */
static void add_chunk(luaL_Buffer *b, const char *name, const char *data,
                      size_t length)
{
    unsigned char number[4];
    uLong sum = crc32(0, (const Bytef *)name, 4);
    if (length > 0)
        sum = crc32(sum, (const Bytef *)data, (uInt)length);
    put_big(number, (uint32_t)length);
    luaL_addlstring(b, (char *)number, 4);
    luaL_addlstring(b, name, 4);
    luaL_addlstring(b, data, length);
    put_big(number, (uint32_t)sum);
    luaL_addlstring(b, (char *)number, 4);
}

/* r:png(): the picture as a file. */
static int png(lua_State *L)
{
    const raster *r = check_raster(L);
    size_t row = 3 * (size_t)r->width, length = (row + 1) * (size_t)r->height;
    unsigned char head[13] = {0};
    unsigned char *lines = lua_newuserdatauv(L, length, 0);
    for (int y = 0; y < r->height; y++) {
        lines[(row + 1) * (size_t)y] = 0; /* as it is */
        memcpy(lines + (row + 1) * (size_t)y + 1, r->pixels + row * (size_t)y,
               row);
    }
    push_deflated(L, lines, length);
    size_t packed;
    const char *data = lua_tolstring(L, -1, &packed);
    put_big(head, (uint32_t)r->width);
    put_big(head + 4, (uint32_t)r->height);
    head[8] = 8; /* bits of each of */
    head[9] = 2; /* red, green and blue */
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addlstring(&b, "\211PNG\r\n\032\n", 8);
    add_chunk(&b, "IHDR", (char *)head, sizeof head);
    add_chunk(&b, "IDAT", data, packed);
    add_chunk(&b, "IEND", "", 0);
    luaL_pushresult(&b);
    return 1;
}

/* --- sixels -----------------------------------------------------------------
 */
/* Bands of six lines, in each of which a colour is drawn after the other: a
 * character has a bit for each line. Source: DEC VT330/VT340 Programmer
 * Reference Manual, volume 2, chapter 14. */

enum { LEVELS = 6, CUBE = LEVELS * LEVELS * LEVELS, GREYS = 40, BAND = 6 };
enum { COLOURS = CUBE + GREYS, COLOURLESS = 24 };

/* Of 6 x 6 x 6 colours, and of as many greys as there are places left. */
static unsigned char nearest_colour(const unsigned char *p)
{
    int at = 0, low = 255, high = 0, sum = 0;
    for (int k = 0; k < 3; k++) {
        at = at * LEVELS + (p[k] * (LEVELS - 1) + 127) / 255;
        low = p[k] < low ? p[k] : low;
        high = p[k] > high ? p[k] : high;
        sum += p[k];
    }
    if (high - low < COLOURLESS)
        at = CUBE + (sum * (GREYS - 1) + 382) / 765;
    return (unsigned char)at;
}

static void add_run(luaL_Buffer *b, int count, int bits)
{
    char text[32];
    char c = (char)('?' + bits);
    if (count > 3) {
        snprintf(text, sizeof text, "!%d%c", count, c);
        luaL_addstring(b, text);
        return;
    }
    for (; count > 0; count--)
        luaL_addchar(b, c);
}

/* The line of one colour in a band whose colours are at `of`, row by row. */
static void add_band(luaL_Buffer *b, const unsigned char *of, int width,
                     int rows, int colour)
{
    char text[16];
    int bits = -1, count = 0;
    snprintf(text, sizeof text, "#%d", colour);
    luaL_addstring(b, text);
    for (int x = 0; x < width; x++) {
        int here = 0;
        for (int y = 0; y < rows; y++)
            here |= (of[y * width + x] == colour) << y;
        if (here != bits) {
            add_run(b, count, bits);
            bits = here;
            count = 0;
        }
        count++;
    }
    if (bits > 0)
        add_run(b, count, bits);
    luaL_addchar(b, '$');
}

/* In hundredths, as the terminals measure them. */
static void add_colours(luaL_Buffer *b)
{
    char text[48];
    for (int i = 0; i < CUBE; i++) {
        snprintf(text, sizeof text, "#%d;2;%d;%d;%d", i, i / 36 * 20,
                 i / 6 % 6 * 20, i % 6 * 20);
        luaL_addstring(b, text);
    }
    for (int i = 0; i < GREYS; i++) {
        int light = (100 * i + (GREYS - 1) / 2) / (GREYS - 1);
        snprintf(text, sizeof text, "#%d;2;%d;%d;%d", CUBE + i, light, light,
                 light);
        luaL_addstring(b, text);
    }
}

/* r:sixels(): the picture as a sequence for terminals. */
static int sixels(lua_State *L)
{
    const raster *r = check_raster(L);
    char head[48];
    unsigned char *of = lua_newuserdatauv(L, (size_t)r->width * BAND, 0);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    snprintf(head, sizeof head, "\033Pq\"1;1;%d;%d", r->width, r->height);
    luaL_addstring(&b, head);
    add_colours(&b);
    for (int top = 0; top < r->height; top += BAND) {
        int rows = r->height - top < BAND ? r->height - top : BAND;
        unsigned char used[COLOURS] = {0};
        const unsigned char *p = r->pixels + 3 * (size_t)top * (size_t)r->width;
        for (int i = 0; i < rows * r->width; i++) {
            of[i] = nearest_colour(p + 3 * i);
            used[of[i]] = 1;
        }
        for (int colour = 0; colour < COLOURS; colour++)
            if (used[colour])
                add_band(&b, of, r->width, rows, colour);
        luaL_addchar(&b, '-');
    }
    luaL_addstring(&b, "\033\\");
    luaL_pushresult(&b);
    return 1;
}

/* r:rgb(): three bytes a pixel. */
static int rgb(lua_State *L)
{
    const raster *r = check_raster(L);
    lua_pushlstring(L, (const char *)r->pixels,
                    3 * (size_t)r->width * (size_t)r->height);
    return 1;
}

static const luaL_Reg methods[] = {
    {"clip", clip}, {"stroke", stroke}, {"fill", fill},     {"put", put},
    {"png", png},   {"rgb", rgb},       {"sixels", sixels}, {NULL, NULL}};

void lumat_open_raster(lua_State *L)
{
    luaL_newmetatable(L, RASTER);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
