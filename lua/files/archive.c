/* Archives: zip files, written on top of files that are replaced whole. Parts
 * are stored as they are, or packed by deflate.
 * Sizes and places have 64 bits where 32 do not hold them. Source: PKWARE,
 * APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3. */
#include "cancellation.h"
#include "files_parts.h"
#include "fence.h"
#include "value.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static const char METATABLE[] = "lumat.archive";

enum {
    INPUT = 1 << 16,
    LOCAL_HEADER = 0x04034b50,
    DIRECTORY_ENTRY = 0x02014b50,
    END_64 = 0x06064b50,
    FIND_END_64 = 0x07064b50,
    END = 0x06054b50,
    /* their lengths, without names */
    LOCAL_BYTES = 30,
    ENTRY_BYTES = 46,
    END_64_BYTES = 56,
    FIND_BYTES = 20,
    END_BYTES = 22,
    WIDE = 1, /* an extra field of numbers of 64 bits */
    MOST_SHORT = 0xffff,
    STORED = 0,
    DEFLATED = 8
};

static const uint64_t MOST_LONG = 0xffffffff;

/* A part of a written archive. */
typedef struct written_part {
    char *name;
    uint64_t start, length; /* of its header; of its content */
    uint64_t packed;        /* as it stands in the file */
    uint32_t checksum;
    int method;
} written_part;

struct lumat_archive {
    const char *who;
    int progress; /* begun: see progress.h */

    written_part *parts; /* of a written one; the last may be open */
    size_t count, room;
    lumat_atomic file;
    int packs; /* pack is in use, for the last part */
    z_stream pack;

    int fd;         /* of a read one, or -1 */
    uint64_t size;  /* of that file */
    uint64_t taken; /* bytes of it that parts were read from */
    int places;     /* reference of a table: name -> place in the directory,
                       1 -> the directory */
    /* the part that is read */
    char part[48];       /* as much of its name as messages show; "": none */
    uint64_t at, packed; /* in the file: where it goes on, and what is left */
    uint64_t left;       /* of its content */
    uint32_t wanted, checksum;
    int is_packed; /* unpack is in use */
    z_stream unpack;
    unsigned char *input; /* of unpack: INPUT bytes */
    char path[];
};

void lumat_archive_fail(lua_State *L, const lumat_archive *a,
                        const char *format, ...)
{
    va_list values;
    lua_pushfstring(L, "%s: '%s' ", a->who, a->path);
    va_start(values, format);
    lua_pushvfstring(L, format, values);
    va_end(values);
    lua_concat(L, 2);
    lumat_raise(L, "%s", lua_tostring(L, -1));
}

/* Raises that the part that is read is damaged, or else the whole. */
static void fail_damaged(lua_State *L, const lumat_archive *a)
{
    if (a->part[0] != '\0')
        lumat_archive_fail(L, a, "is damaged or cut off in its part '%s'",
                           a->part);
    lumat_archive_fail(L, a, "is damaged or cut off");
}

/* --- opening and closing ------------------------------------------------- */

static lumat_archive *push_archive(lua_State *L, const char *who,
                                   const char *path)
{
    size_t length = strlen(path) + 1;
    lumat_archive *a = lua_newuserdatauv(L, sizeof *a + length, 0);
    memset(a, 0, sizeof *a);
    a->who = who;
    a->file.fd = a->fd = -1;
    a->places = LUA_NOREF;
    memcpy(a->path, path, length);
    luaL_setmetatable(L, METATABLE);
    return a;
}

static void leave_part(lumat_archive *a)
{
    if (a->is_packed)
        inflateEnd(&a->unpack);
    a->is_packed = 0;
    a->left = a->packed = 0;
    a->part[0] = '\0';
}

static int close_archive(lua_State *L)
{
    lumat_archive *a = luaL_checkudata(L, 1, METATABLE);
    leave_part(a);
    if (a->packs)
        deflateEnd(&a->pack);
    a->packs = 0;
    free(a->input);
    a->input = NULL;
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
    luaL_unref(L, LUA_REGISTRYINDEX, a->places);
    a->places = LUA_NOREF;
    for (size_t i = 0; i < a->count; i++)
        free(a->parts[i].name);
    free(a->parts);
    a->parts = NULL;
    a->count = a->room = 0;
    gpu_end_work(a->progress);
    a->progress = 0;
    lumat_atomic_abort(&a->file);
    return 0;
}

void lumat_open_archive(lua_State *L)
{
    lumat_open_closing(L, METATABLE, close_archive);
}

/* Raises unless error is 0. */
static void check(lua_State *L, const lumat_archive *a, const char *verb,
                  int error)
{
    if (error != 0)
        lumat_raise(L, "%s: cannot %s '%s': %s", a->who, verb, a->path,
                    lumat_error_text(error));
}

/* With the first part: what ends it, an archive's scope, is there by then. */
static void begin_progress(lumat_archive *a, const char *verb)
{
    const char *slash = strrchr(a->path, '/');
    if (!a->progress)
        a->progress =
            gpu_begin_work("%s %s", verb, slash != NULL ? slash + 1 : a->path);
}

lumat_archive *lumat_archive_create(lua_State *L, const char *who,
                                    const char *path)
{
    lumat_archive *a = push_archive(L, who, path);
    check(L, a, "write", lumat_atomic_open(&a->file, path));
    return a;
}

/* --- writing ------------------------------------------------------------- */

enum {
    VERSION = 45,       /* with sizes of 64 bits */
    FIRST_DAY = 0x21,   /* the earliest date there is: equal contents give equal
                           files */
    LONGEST_RECORD = 80 /* without the name */
};

/* A record on its way into the file. */
typedef struct record {
    unsigned char bytes[LONGEST_RECORD];
    size_t length;
} record;

/* Little endian, so many bytes. */
static void add(record *r, int bytes, uint64_t value)
{
    for (int i = 0; i < bytes; i++, value >>= 8)
        r->bytes[r->length++] = (unsigned char)value;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

static void put(lua_State *L, lumat_archive *a, const void *data, size_t n)
{
    check(L, a, "write", lumat_atomic_write(&a->file, data, n));
}

/* The fields that both headers of a part have, from the version that reads it
 * on to the length of the name. */
static void add_common(record *r, const written_part *p, uint64_t packed,
                       uint64_t length)
{
    add(r, 2, VERSION);
    add(r, 2, 0); /* flags */
    add(r, 2, (uint64_t)p->method);
    add(r, 2, 0); /* time */
    add(r, 2, FIRST_DAY);
    add(r, 4, p->checksum);
    add(r, 4, packed);
    add(r, 4, length);
    add(r, 2, strlen(p->name));
}

/* Its length in 64 bits: it is not known when the header is written first. */
static record local_header(const written_part *p)
{
    record r = {.length = 0};
    add(&r, 4, LOCAL_HEADER);
    add_common(&r, p, MOST_LONG, MOST_LONG);
    add(&r, 2, 20); /* bytes of what stands behind the name */
    return r;
}

static record local_sizes(const written_part *p)
{
    record r = {.length = 0};
    add(&r, 2, WIDE);
    add(&r, 2, 16);
    add(&r, 8, p->length);
    add(&r, 8, p->packed);
    return r;
}

static written_part *add_part(lua_State *L, lumat_archive *a, const char *name)
{
    size_t room = a->room > 0 ? a->room * 2 : 16;
    if (a->count == a->room) {
        written_part *parts = realloc(a->parts, room * sizeof *parts);
        check(L, a, "write", parts != NULL ? 0 : ENOMEM);
        a->parts = parts;
        a->room = room;
    }
    written_part *p = &a->parts[a->count];
    *p = (written_part){.name = strdup(name)};
    check(L, a, "write", p->name != NULL ? 0 : ENOMEM);
    p->start = (uint64_t)lumat_atomic_size(&a->file);
    a->count++;
    return p;
}

static void begin_packing(lua_State *L, lumat_archive *a)
{
    enum { RAW = -15, MEMORY = 8 };
    if (a->input == NULL)
        a->input = malloc(INPUT);
    memset(&a->pack, 0, sizeof a->pack);
    if (a->input == NULL ||
        deflateInit2(&a->pack, Z_DEFAULT_COMPRESSION, Z_DEFLATED, RAW, MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        check(L, a, "write", ENOMEM);
    a->packs = 1;
}

void lumat_archive_begin_packed(lua_State *L, lumat_archive *a,
                                const char *name)
{
    lumat_archive_begin(L, a, name);
    a->parts[a->count - 1].method = DEFLATED;
    begin_packing(L, a);
}

void lumat_archive_begin(lua_State *L, lumat_archive *a, const char *name)
{
    begin_progress(a, "save");
    if (strlen(name) > MOST_SHORT)
        lumat_archive_fail(L, a, "cannot have a part whose name is so long");
    const written_part *p = add_part(L, a, name);
    record header = local_header(p), sizes = local_sizes(p);
    put(L, a, header.bytes, header.length);
    put(L, a, name, strlen(name));
    put(L, a, sizes.bytes, sizes.length);
}

static void put_packed(lua_State *L, lumat_archive *a, written_part *p,
                       const void *data, size_t length, int flush)
{
    enum { MOST = 1 << 24 };
    const unsigned char *bytes = data;
    do {
        size_t n = length < MOST ? length : MOST;
        int how = n == length ? flush : Z_NO_FLUSH;
        a->pack.next_in = (unsigned char *)bytes;
        a->pack.avail_in = (uInt)n;
        do {
            a->pack.next_out = a->input;
            a->pack.avail_out = INPUT;
            deflate(&a->pack, how);
            size_t done = INPUT - a->pack.avail_out;
            put(L, a, a->input, done);
            p->packed += done;
        } while (a->pack.avail_out == 0);
        lumat_poll(L, 0);
        bytes += n;
        length -= n;
    } while (length > 0);
}

void lumat_archive_write(lua_State *L, lumat_archive *a, const void *data,
                         size_t length)
{
    written_part *p = &a->parts[a->count - 1];
    lumat_poll(L, 0);
    if (a->packs)
        put_packed(L, a, p, data, length, Z_NO_FLUSH);
    else
        put(L, a, data, length);
    p->packed += a->packs ? 0 : length;
    p->checksum = (uint32_t)crc32_z(p->checksum, data, length);
    p->length += length;
}

/* Now the header can say what it begins. */
void lumat_archive_end(lua_State *L, lumat_archive *a)
{
    written_part *p = &a->parts[a->count - 1];
    if (a->packs) {
        put_packed(L, a, p, "", 0, Z_FINISH);
        deflateEnd(&a->pack);
        a->packs = 0;
    }
    record header = local_header(p), sizes = local_sizes(p);
    off_t start = (off_t)p->start;
    off_t behind = start + (off_t)(header.length + strlen(p->name));
    int error =
        lumat_atomic_patch(&a->file, start, header.bytes, header.length);
    if (error == 0)
        error = lumat_atomic_patch(&a->file, behind, sizes.bytes, sizes.length);
    check(L, a, "write", error);
}

/* Numbers that are too large for their field stand, all of them, behind the
 * name. */
static void put_entry(lua_State *L, lumat_archive *a, const written_part *p)
{
    record r = {.length = 0}, sizes = {.length = 0};
    int is_wide = p->length >= MOST_LONG || p->packed >= MOST_LONG ||
                  p->start >= MOST_LONG;
    if (is_wide) {
        add(&sizes, 2, WIDE);
        add(&sizes, 2, 24);
        add(&sizes, 8, p->length);
        add(&sizes, 8, p->packed);
        add(&sizes, 8, p->start);
    }
    add(&r, 4, DIRECTORY_ENTRY);
    add(&r, 2, VERSION); /* that wrote it */
    add_common(&r, p, is_wide ? MOST_LONG : p->packed,
               is_wide ? MOST_LONG : p->length);
    add(&r, 2, sizes.length);
    add(&r, 2, 0); /* comment */
    add(&r, 2, 0); /* disk */
    add(&r, 2, 0); /* attributes, twice */
    add(&r, 4, 0);
    add(&r, 4, is_wide ? MOST_LONG : p->start);
    put(L, a, r.bytes, r.length);
    put(L, a, p->name, strlen(p->name));
    put(L, a, sizes.bytes, sizes.length);
}

static record wide_end(uint64_t count, uint64_t start, uint64_t length)
{
    record r = {.length = 0};
    add(&r, 4, END_64);
    add(&r, 8, 44); /* bytes that follow */
    add(&r, 2, VERSION);
    add(&r, 2, VERSION);
    add(&r, 8, 0); /* disks */
    add(&r, 8, count);
    add(&r, 8, count);
    add(&r, 8, length);
    add(&r, 8, start);
    add(&r, 4, FIND_END_64);
    add(&r, 4, 0);
    add(&r, 8, start + length);
    add(&r, 4, 1); /* disk in all */
    return r;
}

/* The end of an archive whose directory is of so many parts and bytes. */
static record end_record(uint64_t count, uint64_t start, uint64_t length)
{
    record r = {.length = 0};
    add(&r, 4, END);
    add(&r, 4, 0); /* disks */
    add(&r, 2, at_most(count, MOST_SHORT));
    add(&r, 2, at_most(count, MOST_SHORT));
    add(&r, 4, at_most(length, MOST_LONG));
    add(&r, 4, at_most(start, MOST_LONG));
    add(&r, 2, 0); /* comment */
    return r;
}

void lumat_archive_commit(lua_State *L, lumat_archive *a)
{
    uint64_t start = (uint64_t)lumat_atomic_size(&a->file);
    for (size_t i = 0; i < a->count; i++)
        put_entry(L, a, &a->parts[i]);
    uint64_t length = (uint64_t)lumat_atomic_size(&a->file) - start;
    record wide = wide_end(a->count, start, length);
    record end = end_record(a->count, start, length);
    if (a->count >= MOST_SHORT || start >= MOST_LONG || length >= MOST_LONG)
        put(L, a, wide.bytes, wide.length);
    put(L, a, end.bytes, end.length);
    check(L, a, "write", lumat_atomic_commit(&a->file));
}

/* --- the directory of a read archive ------------------------------------- */

/* Little endian, so many bytes. */
static uint64_t get(const unsigned char *from, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i > 0; i--)
        value = value << 8 | from[i - 1];
    return value;
}

/* Reads from a place of the file, which has all of it. */
static void take(lua_State *L, lumat_archive *a, uint64_t at, void *data,
                 size_t length)
{
    ssize_t n = lumat_read_fully(a->fd, data, length, (off_t)at);
    check(L, a, "read", n < 0 ? errno : 0);
    if ((size_t)n < length)
        fail_damaged(L, a);
}

static int is_within(uint64_t start, uint64_t length, uint64_t size)
{
    return start <= size && length <= size - start;
}

/* Where the archive's last record stands: behind it is a comment at most. */
static uint64_t find_end(lua_State *L, lumat_archive *a,
                         unsigned char end[END_BYTES])
{
    enum { MOST = END_BYTES + MOST_SHORT };
    size_t n = a->size < MOST ? (size_t)a->size : MOST;
    unsigned char *tail = lua_newuserdatauv(L, MOST, 0);
    take(L, a, a->size - n, tail, n);
    for (size_t i = n; i >= END_BYTES; i--) {
        const unsigned char *p = tail + i - END_BYTES;
        if (get(p, 4) != END || get(p + 20, 2) != n - i)
            continue;
        memcpy(end, p, END_BYTES);
        lua_pop(L, 1);
        return a->size - n + i - END_BYTES;
    }
    lumat_archive_fail(L, a, "is no archive, or is cut off");
    return 0;
}

typedef struct directory {
    uint64_t start, length, count;
} directory;

/* What the last record says, or one in front of it of larger numbers. */
static directory find_directory(lua_State *L, lumat_archive *a)
{
    unsigned char end[END_BYTES], wide[END_64_BYTES];
    uint64_t at = find_end(L, a, end);
    directory d = {get(end + 16, 4), get(end + 12, 4), get(end + 10, 2)};
    if (d.start == MOST_LONG || d.length == MOST_LONG ||
        d.count == MOST_SHORT) {
        if (at >= FIND_BYTES)
            take(L, a, at - FIND_BYTES, wide, FIND_BYTES);
        if (at >= FIND_BYTES && get(wide, 4) == FIND_END_64) {
            at = get(wide + 8, 8);
            if (!is_within(at, END_64_BYTES, a->size))
                lumat_archive_fail(L, a, "has a damaged list of its parts");
            take(L, a, at, wide, END_64_BYTES);
            d = (directory){get(wide + 48, 8), get(wide + 40, 8),
                            get(wide + 32, 8)};
            if (get(wide, 4) != END_64)
                lumat_archive_fail(L, a, "has a damaged list of its parts");
        }
    }
    if (!is_within(d.start, d.length, at) || d.count > d.length / ENTRY_BYTES)
        lumat_archive_fail(L, a, "has a damaged list of its parts");
    return d;
}

/* The bytes of the entry at p, of which there are so many more; 0: none. */
static size_t entry_length(const unsigned char *p, size_t rest)
{
    if (rest < ENTRY_BYTES || get(p, 4) != DIRECTORY_ENTRY)
        return 0;
    size_t n = ENTRY_BYTES +
               (size_t)(get(p + 28, 2) + get(p + 30, 2) + get(p + 32, 2));
    return n <= rest ? n : 0;
}

/* Notes the place of every part's entry. To look for each from the start on
 * would take a time that grows with the square of their number. */
static void list_parts(lua_State *L, lumat_archive *a)
{
    directory d = find_directory(L, a);
    lua_newtable(L);
    unsigned char *bytes = lua_newuserdatauv(L, (size_t)d.length + 1, 0);
    take(L, a, d.start, bytes, (size_t)d.length);
    lua_rawseti(L, -2, 1);
    size_t at = 0;
    for (uint64_t i = 0; i < d.count; i++) {
        size_t n = entry_length(bytes + at, (size_t)d.length - at);
        lumat_poll(L, (int64_t)i);
        if (n == 0)
            lumat_archive_fail(L, a, "has a damaged list of its parts");
        lua_pushlstring(L, (const char *)bytes + at + ENTRY_BYTES,
                        (size_t)get(bytes + at + 28, 2));
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -3) != LUA_TNIL)
            lumat_archive_fail(L, a, "has two parts of the name '%s'",
                               lua_tostring(L, -2));
        lua_pop(L, 1);
        lua_pushinteger(L, (lua_Integer)at);
        lua_rawset(L, -3);
        at += n;
    }
    a->places = luaL_ref(L, LUA_REGISTRYINDEX);
}

lumat_archive *lumat_archive_open(lua_State *L, const char *who,
                                  const char *path)
{
    size_t size = 0;
    lumat_archive *a = push_archive(L, who, path);
    a->fd = lumat_open_regular(path, &size);
    check(L, a, "read", a->fd < 0 ? errno : 0);
    a->size = size;
    list_parts(L, a);
    return a;
}

void lumat_archive_names(lua_State *L, lumat_archive *a)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, a->places);
    int places = lua_gettop(L);
    lua_newtable(L);
    lua_Integer count = 0;
    for (lua_pushnil(L); lua_next(L, places); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            continue;
        lua_pushvalue(L, -2);
        lua_rawseti(L, places + 1, ++count);
    }
    lua_replace(L, places);
}

/* --- reading ------------------------------------------------------------- */

/* What the directory says of a part. */
typedef struct listed_part {
    const char *name;
    uint64_t place, length, packed; /* of its header; bytes */
    uint32_t checksum;
    int method;
    size_t name_length;
} listed_part;

/* Numbers that are too large for their field stand in one behind the name.
 * Returns 0 when one of them is missing. */
static int widen(listed_part *p, const unsigned char *extra, size_t length)
{
    uint64_t *numbers[] = {&p->length, &p->packed, &p->place};
    const unsigned char *field = NULL;
    size_t left = 0;
    while (length >= 4 && field == NULL) {
        size_t n = (size_t)get(extra + 2, 2);
        if (n > length - 4)
            break;
        if (get(extra, 2) == WIDE) {
            field = extra + 4;
            left = n;
        }
        extra += 4 + n;
        length -= 4 + n;
    }
    for (int i = 0; i < 3; i++) {
        if (*numbers[i] != MOST_LONG)
            continue;
        if (left < 8)
            return 0;
        *numbers[i] = get(field, 8);
        field += 8;
        left -= 8;
    }
    return 1;
}

static listed_part find_part(lua_State *L, lumat_archive *a, const char *name)
{
    const unsigned char *e = NULL;
    leave_part(a);
    lua_rawgeti(L, LUA_REGISTRYINDEX, a->places);
    if (lua_istable(L, -1) && lua_getfield(L, -1, name) == LUA_TNUMBER) {
        lua_rawgeti(L, -2, 1);
        e = lua_touserdata(L, -1); /* the table keeps it */
        e += lua_tointeger(L, -2);
        lua_pop(L, 1);
    }
    if (e == NULL) {
        lumat_archive_fail(L, a, "has no readable part '%s'", name);
        return (listed_part){.name = name}; /* not reached */
    }
    listed_part p = {.name = name,
                     .place = get(e + 42, 4),
                     .length = get(e + 24, 4),
                     .packed = get(e + 20, 4),
                     .checksum = (uint32_t)get(e + 16, 4),
                     .method = (int)get(e + 10, 2),
                     .name_length = (size_t)get(e + 28, 2)};
    int is_secret = get(e + 8, 2) & 1;
    if (!widen(&p, e + ENTRY_BYTES + p.name_length, (size_t)get(e + 30, 2)) ||
        is_secret)
        lumat_archive_fail(L, a, "has no readable part '%s'", name);
    lua_pop(L, 2);
    return p;
}

/* Before anything is made room for: can its bytes in the file give what the
 * part claims? Deflate gives at most 258 bytes for 2 bits. */
static void check_claim(lua_State *L, lumat_archive *a, const listed_part *p)
{
    enum { MOST = 1032 };
    int is_stored = p->method == STORED;
    if (!is_stored && p->method != DEFLATED)
        lumat_archive_fail(L, a,
                           "has a part '%s' that is packed in a way "
                           "that is not read",
                           p->name);
    if (p->packed > a->size - a->taken)
        lumat_archive_fail(L, a, "is cut off, or its parts overlap: '%s'",
                           p->name);
    if (is_stored ? p->length != p->packed : p->length / MOST > p->packed)
        lumat_archive_fail(L, a,
                           "claims %I bytes in its part '%s', which has "
                           "%I",
                           (LUAI_UACINT)p->length, p->name,
                           (LUAI_UACINT)p->packed);
    a->taken += p->packed;
}

static void begin_unpacking(lua_State *L, lumat_archive *a)
{
    enum { RAW = -15 }; /* of the largest window */
    if (a->input == NULL)
        a->input = malloc(INPUT);
    memset(&a->unpack, 0, sizeof a->unpack);
    if (a->input == NULL || inflateInit2(&a->unpack, RAW) != Z_OK)
        check(L, a, "read", ENOMEM);
    a->is_packed = 1;
}

static uint64_t open_part(lua_State *L, lumat_archive *a, const listed_part *p)
{
    unsigned char header[LOCAL_BYTES];
    check_claim(L, a, p);
    if (!is_within(p->place, LOCAL_BYTES, a->size))
        lumat_archive_fail(L, a, "has no readable part '%s'", p->name);
    take(L, a, p->place, header, LOCAL_BYTES);
    a->at = p->place + LOCAL_BYTES + get(header + 26, 2) + get(header + 28, 2);
    if (get(header, 4) != LOCAL_HEADER ||
        get(header + 26, 2) != p->name_length ||
        !is_within(a->at, p->packed, a->size))
        lumat_archive_fail(L, a, "has no readable part '%s'", p->name);
    snprintf(a->part, sizeof a->part, "%s", p->name);
    a->packed = p->packed;
    a->left = p->length;
    a->wanted = p->checksum;
    a->checksum = 0;
    if (p->method == DEFLATED)
        begin_unpacking(L, a);
    return p->length;
}

uint64_t lumat_archive_find(lua_State *L, lumat_archive *a, const char *part)
{
    begin_progress(a, "load");
    listed_part p = find_part(L, a, part);
    return open_part(L, a, &p);
}

uint64_t lumat_archive_find_text(lua_State *L, lumat_archive *a,
                                 const char *part)
{
    enum { ANYWAY = 1 << 20, MOST = 32 };
    begin_progress(a, "load");
    listed_part p = find_part(L, a, part);
    if (p.length > ANYWAY && (p.length - ANYWAY) / MOST > p.packed)
        lumat_archive_fail(L, a,
                           "packs the %I bytes of '%s' into %I, as no "
                           "session's are",
                           (LUAI_UACINT)p.length, part, (LUAI_UACINT)p.packed);
    return open_part(L, a, &p);
}

static void take_packed(lua_State *L, lumat_archive *a)
{
    size_t n = a->packed < INPUT ? (size_t)a->packed : INPUT;
    take(L, a, a->at, a->input, n);
    a->at += n;
    a->packed -= n;
    a->unpack.next_in = a->input;
    a->unpack.avail_in = (uInt)n;
}

static void unpack(lua_State *L, lumat_archive *a, void *data, size_t length)
{
    a->unpack.next_out = data;
    a->unpack.avail_out = (uInt)length;
    while (a->unpack.avail_out > 0) {
        if (a->unpack.avail_in == 0)
            take_packed(L, a);
        int result = inflate(&a->unpack, Z_NO_FLUSH);
        check(L, a, "read", result == Z_MEM_ERROR ? ENOMEM : 0);
        if (a->unpack.avail_out > 0 && result != Z_OK)
            fail_damaged(L, a);
    }
}

void lumat_archive_read(lua_State *L, lumat_archive *a, void *data,
                        size_t length)
{
    enum { MOST = 1 << 24 };
    char *bytes = data;
    if (length > a->left)
        fail_damaged(L, a);
    while (length > 0) {
        size_t n = length < MOST ? length : MOST;
        lumat_poll(L, 0);
        if (a->is_packed) {
            unpack(L, a, bytes, n);
        } else {
            take(L, a, a->at, bytes, n);
            a->at += n;
        }
        a->checksum = (uint32_t)crc32_z(a->checksum, (const Bytef *)bytes, n);
        a->left -= n;
        bytes += n;
        length -= n;
    }
}

void lumat_archive_finish(lua_State *L, lumat_archive *a)
{
    if (a->left == 0 && a->checksum != a->wanted)
        lumat_archive_fail(
            L, a, "is damaged in its part '%s': a checksum is wrong", a->part);
    leave_part(a);
}
