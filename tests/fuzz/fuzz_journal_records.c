/* Feeds any bytes to the reader of journals. The first byte chooses whether
 * lines get the checksum they should have, and where the file ended when it
 * was read before. Holds: what is read ends with a record, reading as far
 * again gives the same, and so does reading a file that grew in two steps. */
#include "experiment_parts.h"
#include "lualib.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void require(int truth)
{
    if (!truth)
        abort();
}

/* The lines, each with its mark, if they are to have one. */
static void write_lines(FILE *out, const char *text, size_t length, int marked)
{
    char mark[LUMAT_MARK + 1];
    const char *end = text + length, *stop;
    for (; marked && (stop = memchr(text, '\n', (size_t)(end - text)));
         text = stop + 1) {
        lumat_mark_record(text, (size_t)(stop - text), mark);
        fwrite(text, 1, (size_t)(stop - text), out);
        fwrite(mark, 1, LUMAT_MARK, out);
    }
    fwrite(text, 1, (size_t)(end - text), out);
}

/* Pushes the records from the offset on as text; where they end, or -1 when a
 * line is damaged. */
static int64_t push_read(lua_State *L, const char *path, int64_t offset)
{
    int base = lua_gettop(L);
    lua_getglobal(L, "read");
    lua_pushstring(L, path);
    lua_pushinteger(L, offset);
    lua_call(L, 2, 3);
    int64_t end = lua_isnil(L, base + 1) ? -1 : lua_tointeger(L, base + 2);
    require(end >= 0 || lua_isinteger(L, base + 2));
    require(end < 0 || end >= offset);
    lua_getglobal(L, "encode");
    lua_pushvalue(L, base + 1);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) { /* a list with gaps: no text */
        lua_pop(L, 1);
        lua_pushliteral(L, "?");
    }
    lua_replace(L, base + 1);
    lua_settop(L, base + 1);
    return end;
}

static void check(lua_State *L, const char *path, const char *text,
                  size_t length, size_t first)
{
    require(truncate(path, 0) == 0);
    FILE *out = fopen(path, "w");
    require(out != NULL);
    fwrite(text, 1, first, out);
    fflush(out);
    int64_t before = push_read(L, path, 0);
    fwrite(text + first, 1, length - first, out);
    fclose(out);
    int64_t end = push_read(L, path, 0);
    require(end <= (int64_t)length);
    require(end < 0 || end == 0 || text[end - 1] == '\n');
    if (end < 0 || before < 0)
        return;
    require(before <= end);
    require(push_read(L, path, before) == end);
    require(truncate(path, end) == 0);
    require(push_read(L, path, 0) == end);
    require(lua_rawequal(L, 2, 4)); /* the whole, and as far again */
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    char *text;
    size_t length;
    if (!*path)
        snprintf(path, sizeof path, "/proc/self/fd/%d",
                 memfd_create("journal", 0));
    if (size == 0)
        return 0;
    lua_State *L = luaL_newstate();
    require(L != NULL);
    lua_pushglobaltable(L);
    lumat_add_records(L);
    lumat_add_json(L);
    FILE *lines = open_memstream(&text, &length);
    write_lines(lines, (const char *)data + 1, size - 1, data[0] & 1);
    fclose(lines);
    lua_settop(L, 0);
    check(L, path, text, length, length * (data[0] >> 1) / 127);
    lua_close(L);
    free(text);
    return 0;
}
