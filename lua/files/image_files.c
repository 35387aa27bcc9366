/* Images: a grey one is a matrix from 0 (black) to 1 (white), one of colours a
 * table of such matrices, r, g, b and, where it has it, a for alpha. */
#include "arguments.h"
#include "complex_numbers.h"
#include "cancellation.h"
#include "data_formats.h"
#include "formats.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

/* --- reading -------------------------------------------------------------- */

static const char *const names[][4] = {{NULL},
                                       {"", "", "", ""},
                                       {"grey", "a", "", ""},
                                       {"r", "g", "b", ""},
                                       {"r", "g", "b", "a"}};

/* Pushes a channel as a matrix. */
static void push_channel(lua_State *L, const lumat_image *image,
                         const uint16_t *samples, int channel, gpu_dtype dtype)
{
    int top = lua_gettop(L);
    lumat_result r = lumat_push_result(L, dtype, 2, image->rows, image->cols);
    int all = lua_gettop(L);
    int64_t count = image->rows * image->cols;
    void *host = lumat_push_room(L, count, sizeof(double));
    float *singles = host;
    double *doubles = host;
    unsigned char *truths = host;
    const uint16_t *from = samples + channel;
    for (int64_t i = 0; i < count; i += LUMAT_PIECE) {
        int64_t n = count - i < LUMAT_PIECE ? count - i : LUMAT_PIECE;
        for (int64_t k = 0; k < n; k++, from += image->channels) {
            double x = (double)*from / image->most;
            if (dtype == GPU_F32)
                singles[k] = (float)x;
            else if (dtype == GPU_F64)
                doubles[k] = x;
            else
                truths[k] = *from != 0;
        }
        lumat_add_to_result(L, &r, host, n);
        lumat_poll(L, 0);
    }
    gpu_release(r.flat);
    lua_pushvalue(L, all);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

static int push_image(lua_State *L, const lumat_image *image,
                      const uint16_t *samples)
{
    gpu_dtype dtype = lumat_option_dtype(L, 2, lumat_default_dtype(L));
    if (dtype > GPU_BOOL)
        return lumat_raise(L, "load: an image is real");
    if (image->channels == 1) {
        push_channel(L, image, samples, 0, dtype);
        return 1;
    }
    lua_createtable(L, 0, image->channels);
    for (int i = 0; i < image->channels; i++) {
        push_channel(L, image, samples, i, dtype);
        lua_setfield(L, -2, names[image->channels][i]);
    }
    return 1;
}

static uint16_t *push_samples(lua_State *L, lumat_input *in, lumat_image *image)
{
    size_t count =
        (size_t)image->rows * (size_t)image->cols * (size_t)image->channels;
    image->goes_on = lumat_input_goes_on;
    lumat_begin_input(in, count);
    return lua_newuserdatauv(L, 2 * count + 1, 0);
}

static int refuse(lua_State *L, const lumat_input *in, const char *message)
{
    lumat_poll(L, 0);
    return lumat_refuse_input(L, in, "%s", message);
}

int lumat_load_png(lua_State *L, lumat_input *in, const lumat_format *f)
{
    char message[LUMAT_MESSAGE] = "";
    lumat_png p;
    size_t length;
    (void)f;
    const char *bytes = lumat_push_input_text(L, in, &length);
    if (!lumat_png_open(&p, bytes, length, message, sizeof message))
        return refuse(L, in, message);
    void *work = lua_newuserdatauv(L, p.work, 0);
    uint16_t *samples = push_samples(L, in, &p.image);
    if (!lumat_png_read(&p, samples, work, message, sizeof message))
        return refuse(L, in, message);
    return push_image(L, &p.image, samples);
}

int lumat_load_pnm(lua_State *L, lumat_input *in, const lumat_format *f)
{
    char message[LUMAT_MESSAGE] = "";
    lumat_pnm p;
    size_t length;
    (void)f;
    const char *bytes = lumat_push_input_text(L, in, &length);
    if (!lumat_pnm_open(&p, bytes, length, message, sizeof message))
        return refuse(L, in, message);
    uint16_t *samples = push_samples(L, in, &p.image);
    if (!lumat_pnm_read(&p, samples, message, sizeof message))
        return refuse(L, in, message);
    return push_image(L, &p.image, samples);
}

int lumat_load_jpeg(lua_State *L, lumat_input *in, const lumat_format *f)
{
    char message[LUMAT_MESSAGE] = "";
    lumat_image image;
    size_t length;
    (void)f;
    const char *bytes = lumat_push_input_text(L, in, &length);
    if (!lumat_jpeg_open(&image, bytes, length, message, sizeof message))
        return refuse(L, in, message);
    uint16_t *samples = push_samples(L, in, &image);
    if (!lumat_jpeg_read(&image, bytes, length, samples, message,
                         sizeof message))
        return refuse(L, in, message);
    return push_image(L, &image, samples);
}

/* --- what is written ------------------------------------------------------ */

enum { STOPS = 9 };

/* An image on its way to a file, and what its samples are made by. */
typedef struct canvas {
    lumat_image image;
    uint16_t *samples;
    double low, high;
    const unsigned char (*colours)[3]; /* of the palette; NULL: none */
    int channel;                       /* that is filled */
    gpu_dtype dtype;
    int64_t done;             /* elements of it */
    int64_t outside, special; /* values beyond low and high; NaN */
} canvas;

static unsigned char between(unsigned char a, unsigned char b, double share)
{
    return (unsigned char)lround(a + (b - a) * share);
}

static void put_sample(canvas *c, double x)
{
    uint16_t *to = c->samples + c->done++ * c->image.channels + c->channel;
    double share = (x - c->low) / (c->high - c->low);
    c->special += isnan(x);
    c->outside += share < 0 || share > 1;
    share = share > 0 ? share < 1 ? share : 1 : 0; /* of NaN 0 */
    if (c->colours == NULL) {
        *to = (uint16_t)lround(share * c->image.most);
        return;
    }
    double at = share * (STOPS - 1);
    int i = at < STOPS - 1 ? (int)at : STOPS - 2;
    for (int k = 0; k < 3; k++)
        to[k] = between(c->colours[i][k], c->colours[i + 1][k], at - i);
}

/* Blocks come row by row, also where they are parts of one. */
static void put_block(lua_State *L, void *data, const void *bytes,
                      int64_t first, int64_t rows, int64_t cols)
{
    canvas *c = data;
    const float *singles = bytes;
    const double *doubles = bytes;
    const unsigned char *truths = bytes;
    (void)L, (void)first;
    for (int64_t i = 0; bytes != NULL && i < rows * cols; i++)
        put_sample(c, c->dtype == GPU_F32   ? (double)singles[i]
                      : c->dtype == GPU_F64 ? doubles[i]
                                            : truths[i]);
}

static const gpu_matrix *check_channel(lua_State *L, int index,
                                       const gpu_matrix *first)
{
    const gpu_matrix *m = lumat_test_matrix(L, index);
    if (m == NULL || m->storage == NULL || m->ndim != 2 || gpu_is_complex(m))
        lumat_raise(L, "save: an image is of real matrices, not %s",
                    lumat_push_brief(L, index));
    if (gpu_size(m) == 0)
        lumat_raise(L, "save: an empty matrix is no image");
    if (first != NULL && (m->rows != first->rows || m->cols != first->cols))
        lumat_raise(L, "save: the channels of an image differ in shape: %s, %s",
                    gpu_shape_text(first), gpu_shape_text(m));
    return m;
}

static int is_field(lua_State *L, const char *name)
{
    int is = lua_getfield(L, 1, name) != LUA_TNIL;
    lua_pop(L, 1);
    return is;
}

/* How many channels the value at 1 has; a table's are as load gives them. */
static int count_channels(lua_State *L)
{
    if (!lua_istable(L, 1))
        return 1;
    int channels = is_field(L, "grey") ? 2 : is_field(L, "a") ? 4 : 3;
    for (int i = 0; i < channels; i++)
        if (!is_field(L, names[channels][i]))
            lumat_raise(L,
                        "save: an image of colours is a table of matrices r, "
                        "g, b (and a); there is no %s",
                        names[channels][i]);
    return channels;
}

static double option_number(lua_State *L, const char *name, double otherwise)
{
    double x = otherwise;
    if (lua_istable(L, 3) && lua_getfield(L, 3, name) != LUA_TNIL)
        x = lua_tonumber(L, -1);
    return x;
}

/* The colours of the palette that is asked for, those of heat. */
static void option_palette(lua_State *L, canvas *c)
{
    if (!lua_istable(L, 3) || lua_getfield(L, 3, "palette") == LUA_TNIL)
        return;
    int is_two_sided = strcmp(lua_tostring(L, -1), "diverging") == 0;
    if (c->image.channels > 1)
        lumat_raise(L, "save: an image of colours takes no palette");
    unsigned char(*colours)[3] = lua_newuserdatauv(L, 3 * STOPS, 0);
    lumat_push_required(L, "canvas");
    lua_getfield(L, -1, "palette");
    lua_pushboolean(L, is_two_sided);
    lua_call(L, 1, 1);
    for (int i = 0; i < STOPS; i++) {
        lua_rawgeti(L, -1, i + 1);
        for (int k = 0; k < 3; k++) {
            lua_rawgeti(L, -1, k + 1);
            colours[i][k] = (unsigned char)lua_tointeger(L, -1);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    c->colours = (const unsigned char(*)[3])colours;
    c->image.channels = 3;
    c->image.most = 255;
}

/* Fills the samples of the value at 1, and warns of what is cut off. */
static void fill(lua_State *L, canvas *c)
{
    int channels = count_channels(L);
    const gpu_matrix *first = NULL;
    c->image.channels = channels;
    c->low = option_number(L, "low", 0);
    c->high = option_number(L, "high", 1);
    c->image.most = option_number(L, "bits", 8) == 16 ? 65535 : 255;
    double bits = option_number(L, "bits", 8);
    if (bits != 8 && bits != 16)
        lumat_raise(L, "save: bits: %d, and an image has 8 or 16", (int)bits);
    if (!(c->low < c->high) || !isfinite(c->high - c->low))
        lumat_raise(L, "save: low (%f) has to be below high (%f)", c->low,
                    c->high);
    option_palette(L, c);
    for (int i = 0; i < channels; i++) {
        if (lua_istable(L, 1))
            lua_getfield(L, 1, names[channels][i]);
        else
            lua_pushvalue(L, 1);
        const gpu_matrix *m = check_channel(L, lua_gettop(L), first);
        if (first == NULL) {
            c->image.rows = m->rows;
            c->image.cols = m->cols;
            c->samples = lua_newuserdatauv(
                L, 2 * (size_t)(gpu_size(m) * c->image.channels) + 1, 0);
            memset(c->samples, 0,
                   2 * (size_t)(gpu_size(m) * c->image.channels));
        }
        first = first != NULL ? first : m;
        c->channel = i;
        c->done = 0;
        c->dtype = m->dtype;
        lumat_each_block(L, m, put_block, c);
    }
    if (c->outside + c->special > 0)
        lumat_warn(L, "save",
                   "%lld of %lld values lie outside of %g to %g, and %lld are "
                   "NaN: they are cut; {low=, high=} says what black and "
                   "white are",
                   (long long)c->outside,
                   (long long)(gpu_size(first) * channels), c->low, c->high,
                   (long long)c->special);
}

/* --- PNG ------------------------------------------------------------------ */

static void put_number(unsigned char *to, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(x >> (24 - 8 * i));
}

static void put_chunk(lua_State *L, lumat_target *t, const char *type,
                      const unsigned char *data, size_t length)
{
    unsigned char head[8], end[4];
    put_number(head, (uint32_t)length);
    memcpy(head + 4, type, 4);
    uint32_t sum = (uint32_t)crc32_z(0, head + 4, 4);
    put_number(end, length == 0 ? sum : (uint32_t)crc32_z(sum, data, length));
    lumat_put_bytes(L, t, head, sizeof head);
    lumat_put_bytes(L, t, data, length);
    lumat_put_bytes(L, t, end, sizeof end);
}

enum { PACKED = 1 << 16 };

typedef struct packer {
    z_stream z;
    int is_open;
    unsigned char packed[PACKED];
} packer;

static const char PACKER[] = "lumat.packer";

static int close_packer(lua_State *L)
{
    packer *k = luaL_checkudata(L, 1, PACKER);
    if (k->is_open)
        deflateEnd(&k->z);
    k->is_open = 0;
    return 0;
}

void lumat_open_images(lua_State *L)
{
    lumat_open_closing(L, PACKER, close_packer);
}

static packer *push_packer(lua_State *L)
{
    packer *k = lua_newuserdatauv(L, sizeof *k, 0);
    memset(&k->z, 0, sizeof k->z);
    k->is_open = 0;
    luaL_setmetatable(L, PACKER);
    lua_toclose(L, -1);
    if (deflateInit(&k->z, Z_DEFAULT_COMPRESSION) != Z_OK)
        lumat_raise(L, "save: out of memory");
    k->is_open = 1;
    k->z.next_out = k->packed;
    k->z.avail_out = PACKED;
    return k;
}

static void pack(lua_State *L, lumat_target *t, packer *k,
                 const unsigned char *data, size_t length, int flush)
{
    int result;
    k->z.next_in = (unsigned char *)data;
    k->z.avail_in = (uInt)length;
    do {
        result = deflate(&k->z, flush);
        if (k->z.avail_out == 0 || result == Z_STREAM_END) {
            put_chunk(L, t, "IDAT", k->packed, PACKED - k->z.avail_out);
            k->z.next_out = k->packed;
            k->z.avail_out = PACKED;
        }
    } while (k->z.avail_in > 0 ||
             (flush == Z_FINISH && result != Z_STREAM_END));
}

/* The filter by which a row's bytes become the smallest: none, the pixel on
 * the left, the one above. */
static void filter_row(unsigned char *out, const unsigned char *row,
                       const unsigned char *up, size_t bytes, size_t pixel)
{
    uint64_t best = UINT64_MAX;
    int chosen = 0;
    for (int filter = 0; filter < 3; filter++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < bytes; i++) {
            int from = filter == 0   ? 0
                       : filter == 2 ? up[i]
                       : i >= pixel  ? row[i - pixel]
                                     : 0;
            signed char x = (signed char)(row[i] - from);
            sum += (uint64_t)(x < 0 ? -x : x);
        }
        if (sum < best) {
            best = sum;
            chosen = filter;
        }
    }
    out[0] = (unsigned char)chosen;
    for (size_t i = 0; i < bytes; i++) {
        int from = chosen == 0   ? 0
                   : chosen == 2 ? up[i]
                   : i >= pixel  ? row[i - pixel]
                                 : 0;
        out[i + 1] = (unsigned char)(row[i] - from);
    }
}

/* A row's samples, the high byte of each first. */
static void put_row(const canvas *c, int64_t i, unsigned char *row)
{
    size_t across = (size_t)c->image.cols * (size_t)c->image.channels;
    const uint16_t *from = c->samples + (size_t)i * across;
    for (size_t j = 0; j < across; j++) {
        if (c->image.most > 255)
            *row++ = (unsigned char)(from[j] >> 8);
        *row++ = (unsigned char)from[j];
    }
}

void lumat_save_png(lua_State *L, const char *path, const lumat_format *f)
{
    static const unsigned char kinds[] = {0, 0, 4, 2, 6};
    canvas c = {.samples = NULL};
    unsigned char header[13] = {0};
    (void)f;
    fill(L, &c);
    size_t pixel = (size_t)c.image.channels * (c.image.most > 255 ? 2 : 1);
    size_t bytes = (size_t)c.image.cols * pixel;
    if (c.image.rows > INT32_MAX || c.image.cols > INT32_MAX ||
        bytes > INT32_MAX)
        lumat_raise(L, "save: %Ix%I pixels are too many for a .png file",
                    (LUAI_UACINT)c.image.rows, (LUAI_UACINT)c.image.cols);
    put_number(header, (uint32_t)c.image.cols);
    put_number(header + 4, (uint32_t)c.image.rows);
    header[8] = c.image.most > 255 ? 16 : 8;
    header[9] = kinds[c.image.channels];
    unsigned char *rows = lua_newuserdatauv(L, 3 * bytes + 1, 0);
    unsigned char *row = rows, *up = rows + bytes, *out = up + bytes;
    memset(up, 0, bytes);
    lumat_target *t = lumat_push_target(L, path, bytes * (size_t)c.image.rows);
    lumat_put_bytes(L, t, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(L, t, "IHDR", header, sizeof header);
    packer *k = push_packer(L);
    for (int64_t i = 0; i < c.image.rows; i++) {
        put_row(&c, i, row);
        filter_row(out, row, up, bytes, pixel);
        pack(L, t, k, out, bytes + 1, Z_NO_FLUSH);
        unsigned char *other = row;
        row = up;
        up = other;
        lumat_input_goes_on(bytes);
        lumat_poll(L, 0);
    }
    pack(L, t, k, header, 0, Z_FINISH);
    put_chunk(L, t, "IEND", header, 0);
    lumat_finish_target(L, t);
}

/* --- PGM and PPM ---------------------------------------------------------- */

void lumat_save_pnm(lua_State *L, const char *path, const lumat_format *f)
{
    canvas c = {.samples = NULL};
    char head[64];
    (void)f;
    fill(L, &c);
    if (c.image.channels % 2 == 0)
        lumat_raise(L, "save: such an image has no alpha; a .png file does");
    size_t pixel = (size_t)c.image.channels * (c.image.most > 255 ? 2 : 1);
    size_t bytes = (size_t)c.image.cols * pixel;
    unsigned char *row = lua_newuserdatauv(L, bytes, 0);
    lumat_target *t = lumat_push_target(L, path, bytes * (size_t)c.image.rows);
    int n = snprintf(head, sizeof head, "P%d\n%lld %lld\n%d\n",
                     c.image.channels == 3 ? 6 : 5, (long long)c.image.cols,
                     (long long)c.image.rows, c.image.most);
    lumat_put_bytes(L, t, head, (size_t)n);
    for (int64_t i = 0; i < c.image.rows; i++) {
        put_row(&c, i, row);
        lumat_put_bytes(L, t, row, bytes);
        lumat_input_goes_on(bytes);
        lumat_poll(L, 0);
    }
    lumat_finish_target(L, t);
}
