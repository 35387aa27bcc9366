/* Bytes of files: those that are read, unpacked where gzip packed them, and
 * those that are written, with their progress; and matrices from and to them,
 * a block at a time, so that a large one on a device needs little host
 * memory. Source: RFC 1952, for gzip. */
#include "formats.h"
#include "arguments.h"
#include "cancellation.h"
#include "cores.h"
#include "fence.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    PART = 1 << 22,   /* bytes unpacked at a time */
    PIECE = 1 << 18,  /* bytes that one core reads at a time */
    PACKED = 1 << 16, /* bytes of a packed file at a time */
    GZIP = 16 + 15,   /* zlib's word for it, and its largest window */
    BLOCK_BYTES = 1 << 20
};

/* --- progress ------------------------------------------------------------- */

/* Begins "load name.csv" or "save …" for whoever watches the progress of so
 * many bytes, if any; ended with the same value, before anything raises. */
static int begin_file(const char *what, const char *path, size_t bytes)
{
    const char *slash = strrchr(path, '/');
    if (bytes < PART ||
        !gpu_begin_work("%s %s", what, slash != NULL ? slash + 1 : path))
        return 0;
    return gpu_begin_stage((int64_t)bytes);
}

static void end_file(int began)
{
    gpu_end_work(began);
}

int lumat_input_goes_on(size_t bytes)
{
    gpu_advance((int64_t)bytes);
    return !gpu_is_interrupted();
}

/* --- reading -------------------------------------------------------------- */

static const char INPUT[] = "lumat.input";

static int close_input(lua_State *L)
{
    lumat_input *in = luaL_checkudata(L, 1, INPUT);
    end_file(in->began);
    in->began = 0;
    if (in->fd >= 0)
        close(in->fd);
    in->fd = -1;
    return 0;
}

static int refuse_reading(lua_State *L, const char *path, int error)
{
    if (error == ENOENT || error == ENOTDIR)
        return lumat_refuse_file(L, path);
    return lumat_raise(L, "load: cannot read '%s': %s", path,
                       lumat_error_text(error));
}

int lumat_refuse_input(lua_State *L, const lumat_input *in, const char *format,
                       ...)
{
    char text[2 * LUMAT_MESSAGE];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    return lumat_raise(L, "load: '%s' %s", in->path, text);
}

/* The first bytes of what is packed in the file. Of a damaged one those that
 * can be had: who reads it on tells of the damage. */
static void unpack_head(lumat_input *in)
{
    unsigned char packed[LUMAT_HEAD];
    z_stream z = {
        .next_in = packed, .next_out = in->head, .avail_out = sizeof in->head};
    ssize_t n = lumat_read_fully(in->fd, packed, sizeof packed, 0);
    in->head_length = 0;
    if (n <= 0 || inflateInit2(&z, GZIP) != Z_OK)
        return;
    z.avail_in = (uInt)n;
    inflate(&z, Z_SYNC_FLUSH);
    in->head_length = sizeof in->head - z.avail_out;
    inflateEnd(&z);
}

lumat_input *lumat_push_lasting_input(lua_State *L, const char *path)
{
    lumat_input *in = lua_newuserdatauv(L, sizeof *in, 0);
    memset(in, 0, sizeof *in);
    in->fd = -1;
    in->path = path;
    luaL_setmetatable(L, INPUT);
    in->fd = lumat_open_regular(path, &in->size);
    if (in->fd < 0)
        refuse_reading(L, path, errno);
    if (in->size == 0)
        lumat_raise(L, "load: '%s' is empty", path);
    ssize_t n = lumat_read_fully(in->fd, in->head, sizeof in->head, 0);
    if (n < 0)
        refuse_reading(L, path, errno);
    in->head_length = (size_t)n;
    in->is_packed = n > 2 && memcmp(in->head, "\x1f\x8b\x08", 3) == 0;
    if (in->is_packed)
        unpack_head(in);
    return in;
}

lumat_input *lumat_push_input(lua_State *L, const char *path)
{
    lumat_input *in = lumat_push_lasting_input(L, path);
    lua_toclose(L, -1);
    return in;
}

/* Bytes of a file on their way into memory, which all cores read. */
typedef struct read_job {
    int fd;
    size_t at, length;
    char *to;
    volatile int error; /* -1: the file is shorter now */
} read_job;

static void read_part(void *context, int64_t i)
{
    read_job *j = context;
    size_t first = (size_t)i * PIECE;
    size_t length = j->length - first < PIECE ? j->length - first : PIECE;
    ssize_t n =
        lumat_read_fully(j->fd, j->to + first, length, (off_t)(j->at + first));
    if (n < (ssize_t)length)
        j->error = n < 0 ? errno : -1;
}

void lumat_read_input(lua_State *L, const lumat_input *in, size_t at,
                      void *bytes, size_t length)
{
    enum { ROUND = 32 * PIECE }; /* between two looks at Ctrl-C */
    read_job j = {.fd = in->fd, .at = at, .to = bytes};
    for (; length > 0; length -= j.length, j.at += j.length, j.to += j.length) {
        j.length = length < ROUND ? length : ROUND;
        gpu_on_cores((int64_t)((j.length + PIECE - 1) / PIECE), read_part, &j);
        if (j.error > 0)
            refuse_reading(L, in->path, j.error);
        if (j.error < 0)
            lumat_raise(L, "load: '%s' became shorter while it was read",
                        in->path);
        gpu_advance((int64_t)j.length);
        lumat_poll(L, 0);
    }
}

void lumat_begin_input(lumat_input *in, size_t bytes)
{
    end_file(in->began);
    in->began = begin_file("load", in->path, bytes);
}

/* --- unpacking ------------------------------------------------------------ */

static const char UNPACKER[] = "lumat.unpacker";

typedef struct unpacker {
    z_stream z;
    int is_open;
    unsigned char packed[PACKED];
} unpacker;

static int close_unpacker(lua_State *L)
{
    unpacker *u = luaL_checkudata(L, 1, UNPACKER);
    if (u->is_open)
        inflateEnd(&u->z);
    u->is_open = 0;
    return 0;
}

static unpacker *push_unpacker(lua_State *L)
{
    unpacker *u = lua_newuserdatauv(L, sizeof *u, 0);
    memset(&u->z, 0, sizeof u->z);
    u->is_open = 0;
    luaL_setmetatable(L, UNPACKER);
    lua_toclose(L, -1);
    if (inflateInit2(&u->z, GZIP) != Z_OK)
        lumat_raise(L, "load: out of memory");
    u->is_open = 1;
    return u;
}

/* How long the text is, as the end of the file says (modulo 2^32): a guess to
 * begin with, and no more than what most texts are packed into. */
static size_t guess_length(lua_State *L, const lumat_input *in)
{
    enum { USUAL = 16, ANYWAY = 1 << 16 };
    unsigned char end[4] = {0};
    if (in->size > sizeof end)
        lumat_read_input(L, in, in->size - sizeof end, end, sizeof end);
    size_t said = end[0] | (size_t)end[1] << 8 | (size_t)end[2] << 16 |
                  (size_t)end[3] << 24;
    size_t most = USUAL * in->size + ANYWAY;
    return (said < most ? said : most) + 1;
}

/* Makes room for twice as much in the place of the text, which is at index. */
static char *grow(lua_State *L, int index, size_t used, size_t *room)
{
    char *more = lua_newuserdatauv(L, 2 * *room, 0);
    memcpy(more, lua_touserdata(L, index), used);
    *room *= 2;
    lua_replace(L, index);
    return more;
}

/* Gives the text's place, which is at index and grows, all members of the
 * packed file, one behind the other. */
static char *unpack(lua_State *L, lumat_input *in, int index, size_t room,
                    size_t *length)
{
    unpacker *u = push_unpacker(L);
    char *text = lua_touserdata(L, index);
    size_t at = 0, used = 0;
    int result = Z_OK;
    for (;;) {
        if (u->z.avail_in == 0 && at < in->size) {
            size_t n = in->size - at < PACKED ? in->size - at : PACKED;
            lumat_read_input(L, in, at, u->packed, n);
            at += n;
            u->z.next_in = u->packed;
            u->z.avail_in = (uInt)n;
        }
        if (result == Z_STREAM_END) {
            if (u->z.avail_in == 0 || *u->z.next_in != 0x1f)
                break; /* the end, or what tape drives pad it with */
            inflateReset(&u->z);
        }
        if (used == room)
            text = grow(L, index, used, &room);
        size_t free = room - used < PART ? room - used : PART;
        u->z.next_out = (unsigned char *)text + used;
        u->z.avail_out = (uInt)free;
        uInt before = u->z.avail_in;
        result = inflate(&u->z, Z_NO_FLUSH);
        used += free - u->z.avail_out;
        int moved = u->z.avail_in < before || u->z.avail_out < free;
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            lumat_refuse_input(
                L, in, "is damaged: %zu bytes of it can be unpacked", used);
        if (!moved && result != Z_STREAM_END && at == in->size)
            lumat_refuse_input(
                L, in, "is cut off: %zu bytes of it can be unpacked", used);
    }
    *length = used;
    return text;
}

char *lumat_push_input_text(lua_State *L, lumat_input *in, size_t *length)
{
    *length = in->size;
    lumat_begin_input(in, in->size);
    if (in->is_packed) {
        size_t room = guess_length(L, in);
        lua_newuserdatauv(L, room, 0);
        int index = lua_gettop(L);
        char *text = unpack(L, in, index, room, length);
        lua_pop(L, 1); /* the unpacker, which is closed */
        return text;
    }
    char *text = lua_newuserdatauv(L, in->size, 0);
    lumat_read_input(L, in, 0, text, in->size);
    return text;
}

/* --- bytes one after the other -------------------------------------------- */

int lumat_refuse_source(lua_State *L, const lumat_source *s, const char *format,
                        ...)
{
    char text[2 * LUMAT_MESSAGE];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (s->archive != NULL)
        lumat_archive_fail(L, s->archive, "has a part '%s' that %s", s->part,
                           text);
    return lumat_raise(L, "load: '%s' %s", s->in->path, text);
}

void lumat_take_bytes(lua_State *L, lumat_source *s, void *to, size_t length)
{
    char *next = to;
    if (length > s->left)
        lumat_refuse_source(L, s, "is cut off");
    s->left -= length;
    while (length > 0) {
        size_t n = s->run > 0 && s->in_run < length ? s->in_run : length;
        if (s->archive != NULL)
            lumat_archive_read(L, s->archive, next, n);
        else if (s->memory != NULL)
            memcpy(next, s->memory + s->at, n);
        else
            lumat_read_input(L, s->in, s->at, next, n);
        s->at += n;
        next += n;
        length -= n;
        s->in_run -= s->run > 0 ? n : 0;
        if (s->run > 0 && s->in_run == 0) {
            s->at += s->gap;
            s->in_run = s->run;
        }
    }
}

/* --- results -------------------------------------------------------------- */

lumat_result lumat_push_result(lua_State *L, gpu_dtype dtype, int ndim,
                               int64_t rows, int64_t cols)
{
    gpu_device *device = lumat_option_device(L, 2, NULL);
    lumat_result r = {.flat = lumat_new_matrix(L),
                      .piece = lumat_new_matrix(L)};
    r.all = lumat_new_matrix(L);
    lumat_try(L, gpu_create(r.all, device, dtype, ndim, rows, cols));
    lumat_account(L, r.all);
    lumat_try(L, gpu_reshape(r.all, 1, gpu_size(r.all), 1, r.flat));
    return r;
}

void lumat_add_to_result(lua_State *L, lumat_result *r, const void *host,
                         int64_t count)
{
    gpu_slice rows = {r->done, 1, count}, cols = {0, 1, 1};
    lumat_try(L, gpu_view_block(r->flat, rows, cols, r->piece));
    lumat_try(L, gpu_upload(r->piece, host));
    gpu_release(r->piece);
    r->done += count;
}

void *lumat_push_room(lua_State *L, int64_t count, size_t size)
{
    size_t most = (size_t)(count < LUMAT_PIECE ? count : LUMAT_PIECE);
    return lua_newuserdatauv(L, size * most + 1, 0);
}

void lumat_read_elements(lua_State *L, lumat_source *s, const lumat_npy *n,
                         int exact, lumat_result *r)
{
    char message[LUMAT_MESSAGE] = "";
    int64_t all = gpu_size(r->all), first = r->done;
    gpu_dtype dtype = r->all->dtype;
    int is_plain = lumat_npy_is_plain(n, dtype), done = 1;
    size_t size = (size_t)n->bytes;
    char *own = is_plain ? gpu_own_bytes(r->all) : NULL;
    if (own != NULL) { /* no copy in between */
        lumat_take_bytes(L, s, own + (size_t)first * size,
                         (size_t)(all - first) * size);
        r->done = all;
        gpu_release(r->flat);
        return;
    }
    char *raw = lumat_push_room(L, all, size);
    void *host =
        is_plain ? raw : lumat_push_room(L, all, gpu_dtype_size(dtype));
    while (done && r->done < all) {
        int64_t left = all - r->done;
        int64_t count = left < LUMAT_PIECE ? left : LUMAT_PIECE;
        lumat_take_bytes(L, s, raw, (size_t)count * size);
        lumat_poll(L, 0);
        done = is_plain || lumat_npy_read(n, raw, r->done - first, count, dtype,
                                          host, exact, message, sizeof message);
        if (done)
            lumat_add_to_result(L, r, host, count);
    }
    if (!done)
        lumat_refuse_source(L, s, "cannot be read: %s", message);
    gpu_release(r->flat);
}

void lumat_turn_result(lua_State *L, gpu_matrix *m)
{
    gpu_matrix *turned = lumat_new_matrix(L);
    gpu_view_transposed(m, turned);
    gpu_release(m);
}

/* --- writing -------------------------------------------------------------- */

struct lumat_target {
    lumat_atomic file; /* first: what is closed */
    const char *path;
    int began; /* the progress */
    int packs; /* `packer` is open */
    z_stream packer;
    unsigned char packed[PACKED];
};

static const char ATOMIC[] = "lumat.atomic", TARGET[] = "lumat.target";

static int collect_atomic(lua_State *L)
{
    lumat_atomic_abort(luaL_checkudata(L, 1, ATOMIC));
    return 0;
}

lumat_atomic *lumat_push_atomic(lua_State *L)
{
    lumat_atomic *file = lua_newuserdatauv(L, sizeof *file, 0);
    file->fd = -1;
    file->shared = NULL;
    luaL_setmetatable(L, ATOMIC);
    return file;
}

static int close_target(lua_State *L)
{
    lumat_target *t = luaL_checkudata(L, 1, TARGET);
    end_file(t->began);
    t->began = 0;
    if (t->packs)
        deflateEnd(&t->packer);
    t->packs = 0;
    lumat_atomic_abort(&t->file);
    return 0;
}

/* Raises unless error is 0. */
static void check(lua_State *L, const lumat_target *t, int error)
{
    if (error == 0)
        return;
    const char *what = error == EISDIR   ? "it is a directory"
                       : error == EINVAL ? "it is not a regular file"
                                         : lumat_error_text(error);
    lumat_raise(L, "save: cannot write '%s': %s", t->path, what);
}

lumat_target *lumat_push_target(lua_State *L, const char *path, size_t bytes)
{
    lumat_target *t = lua_newuserdatauv(L, sizeof *t, 0);
    t->file.fd = -1;
    t->file.shared = NULL;
    t->path = path;
    t->began = t->packs = 0;
    memset(&t->packer, 0, sizeof t->packer);
    luaL_setmetatable(L, TARGET);
    lua_toclose(L, -1);
    check(L, t, lumat_atomic_open(&t->file, path));
    if (lumat_has_ending(path, ".gz", 3)) {
        if (deflateInit2(&t->packer, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, 8,
                         Z_DEFAULT_STRATEGY) != Z_OK)
            check(L, t, ENOMEM);
        t->packs = 1;
    }
    t->began = begin_file("save", path, bytes);
    return t;
}

/* Hands the packed bytes on until there are no more of them. */
static void put_packed(lua_State *L, lumat_target *t, int flush)
{
    do {
        t->packer.next_out = t->packed;
        t->packer.avail_out = sizeof t->packed;
        deflate(&t->packer, flush);
        check(L, t,
              lumat_atomic_write(&t->file, t->packed,
                                 sizeof t->packed - t->packer.avail_out));
    } while (t->packer.avail_out == 0);
}

void lumat_put_bytes(lua_State *L, lumat_target *t, const void *data,
                     size_t length)
{
    enum { MOST = 1 << 30 };
    const unsigned char *bytes = data;
    if (!t->packs) {
        check(L, t, lumat_atomic_write(&t->file, data, length));
        return;
    }
    while (length > 0) {
        size_t n = length < MOST ? length : MOST;
        t->packer.next_in = (unsigned char *)bytes;
        t->packer.avail_in = (uInt)n;
        put_packed(L, t, Z_NO_FLUSH);
        bytes += n;
        length -= n;
    }
}

void lumat_finish_target(lua_State *L, lumat_target *t)
{
    if (t->packs)
        put_packed(L, t, Z_FINISH);
    check(L, t, lumat_atomic_commit(&t->file));
}

void lumat_each_block(lua_State *L, const gpu_matrix *m, lumat_block_fn *each,
                      void *data)
{
    int64_t rows = m->rows, cols = m->cols;
    size_t size = gpu_dtype_size(m->dtype);
    int64_t most = BLOCK_BYTES / (int64_t)size;
    if (rows == 0 || cols == 0)
        return;
    int64_t width = cols < most ? cols : most;
    int64_t height = most / width < rows ? most / width : rows;
    void *host = lua_newuserdatauv(L, size * (size_t)(width * height), 0);
    gpu_matrix *block = lumat_new_matrix(L);
    for (int64_t i = 0; i < rows; i += height) {
        gpu_slice r = {i, 1, rows - i < height ? rows - i : height};
        for (int64_t j = 0; j < cols; j += width) {
            gpu_slice c = {j, 1, cols - j < width ? cols - j : width};
            const void *bytes;
            lumat_try(L, gpu_view_block(m, r, c, block));
            lumat_try(L, gpu_look_at_bytes(block, host, &bytes));
            gpu_release(block); /* a view: m holds the bytes */
            if (gpu_is_dry())
                lumat_poll(L, 0);
            each(L, data, gpu_is_dry() ? NULL : bytes, j, r.count, c.count);
            if (!lumat_input_goes_on(size * (size_t)(r.count * c.count)))
                lumat_poll(L, 0);
        }
    }
    lua_pop(L, 2);
}

void lumat_open_streams(lua_State *L)
{
    lumat_open_closing(L, INPUT, close_input);
    lumat_open_closing(L, UNPACKER, close_unpacker);
    lumat_open_closing(L, ATOMIC, collect_atomic);
    lumat_open_closing(L, TARGET, close_target);
}
