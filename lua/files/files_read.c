/* The bytes of a file, for load; or what is wrong with it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cancellation.h"
#include "fence.h"
#include "load_save.h"
#include "matrix.h"

enum { PART = 1 << 22 }; /* bytes read at a time */

/* --- progress ------------------------------------------------------------ */

int lumat_begin_file(const char *what, const char *path, size_t bytes)
{
    const char *slash = strrchr(path, '/');
    if (bytes < PART ||
        !gpu_begin_work("%s %s", what, slash != NULL ? slash + 1 : path))
        return 0;
    return gpu_begin_stage((int64_t)bytes);
}

void lumat_end_file(int began)
{
    gpu_end_work(began);
}

int lumat_file_goes_on(size_t bytes)
{
    gpu_advance((int64_t)bytes);
    return !gpu_is_interrupted();
}

/* --- what is no file of ours ---------------------------------------------- */

enum { MOST_SEEN = 10000, MOST_NAMED = 3 };

/* What others write, and how it comes here. */
static const char *const foreign[][2] = {
    {".npz", "an archive of arrays: in Python numpy.save(\"a.npy\", "
             "numpy.load(\"%s\")[\"a\"]) takes one out"},
    {".mat", "MATLAB's: there writematrix(A, \"a.csv\"), in Octave "
             "csvwrite(\"a.csv\", A) writes one matrix"},
    {".mtx", "of Matrix Market: in Python numpy.save(\"a.npy\", "
             "scipy.io.mmread(\"%s\").toarray()) converts it"},
    {".lum", "a saved session: load_session(\"%s\") reads it"},
    {".lua", "a script: dofile(\"%s\") runs it"},
    {".xlsx", "a spreadsheet: save it there as .csv"},
    {".xls", "a spreadsheet: save it there as .csv"},
    {".ods", "a spreadsheet: save it there as .csv"},
    {".gz", "compressed: unpack it first"},
    {".bz2", "compressed: unpack it first"},
    {".xz", "compressed: unpack it first"},
    {".zst", "compressed: unpack it first"},
    {".zip", "compressed: unpack it first"},
    {".h5", "of HDF5: in Python numpy.save(\"a.npy\", array) writes an array"},
    {".hdf5",
     "of HDF5: in Python numpy.save(\"a.npy\", array) writes an array"},
    {".parquet", "of Parquet: in Python pandas' to_csv writes it as text"},
    {".pkl", "Python's: there numpy.save(\"a.npy\", array) writes an array"},
    {".pt",
     "PyTorch's: there numpy.save(\"a.npy\", t.numpy()) writes an array"},
};

/* It is there, but not to be read. */
static int refuse_kind(lua_State *L, const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof foreign / sizeof *foreign; i++) {
        if (strcasecmp(dot, foreign[i][0]) != 0)
            continue;
        const char *advice = luaL_gsub(L, foreign[i][1], "%s", path);
        return lumat_raise(L, "load: '%s' is %s; load reads " LUMAT_DATA_KINDS,
                           path, advice);
    }
    return lumat_raise(L,
                       "load: '%s' has none of the endings it knows: %s; name "
                       "a table of numbers .txt",
                       path, LUMAT_DATA_KINDS);
}

/* Names that differ in case or in what is behind their last dot alone. */
static int is_same_stem(const char *a, const char *b)
{
    const char *c = strrchr(a, '.'), *d = strrchr(b, '.');
    size_t n = c && c > a ? (size_t)(c - a) : strlen(a);
    size_t m = d && d > b ? (size_t)(d - b) : strlen(b);
    return strcasecmp(a, b) == 0 || (n == m && strncasecmp(a, b, n) == 0) ||
           (m == strlen(a) && strncasecmp(a, b, m) == 0);
}

/* Pushes "a.csv or a.npy": what there is in the folder of that stem; else the
 * one with the most similar name, or "". */
static const char *push_near_files(lua_State *L, const char *folder,
                                   const char *base)
{
    int top = lua_gettop(L), named = 0;
    DIR *d = lumat_may_open(folder, 0) ? opendir(folder) : NULL;
    lua_pushliteral(L, "");
    lua_pushliteral(L, "");
    for (int i = 0; d && i < MOST_SEEN; i++) {
        const struct dirent *e = readdir(d); /* of some a guess will do, too */
        if (!e)
            break;
        if (e->d_name[0] == '.' || strchr(e->d_name, ' '))
            continue;
        if (is_same_stem(base, e->d_name) && lumat_is_data_name(e->d_name) &&
            named < MOST_NAMED) {
            lua_pushfstring(L, "%s%s%s", lua_tostring(L, top + 1),
                            named++ ? " or " : "", e->d_name);
            lua_replace(L, top + 1);
        }
        lua_pushfstring(L, "%s%s ", lua_tostring(L, top + 2), e->d_name);
        lua_replace(L, top + 2);
    }
    if (d)
        closedir(d);
    if (!named && lumat_nearest(L, base, lua_tostring(L, top + 2)))
        lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return lua_tostring(L, -1);
}

/* There is none. */
static int refuse_missing(lua_State *L, const char *path)
{
    char here[PATH_MAX];
    struct stat found;
    const char *slash = strrchr(path, '/'), *base = path, *folder = ".";
    if (slash) {
        base = slash + 1;
        folder = lua_pushlstring(L, path,
                                 slash == path ? 1 : (size_t)(slash - path));
    }
    if (stat(folder, &found) != 0 || !S_ISDIR(found.st_mode))
        return lumat_raise(L,
                           "load: there is no file '%s': there is no folder "
                           "'%s'",
                           path, folder);
    const char *near = push_near_files(L, folder, base);
    if (*near)
        return lumat_raise(L, "load: there is no file '%s': did you mean %s?",
                           path, near);
    if (slash || !getcwd(here, sizeof here))
        return lumat_raise(L, "load: there is no file '%s'", path);
    return lumat_raise(L, "load: there is no file '%s' in %s", path, here);
}

int lumat_refuse_file(lua_State *L, const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return refuse_missing(L, path);
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return lumat_raise(L, "load: '%s' is a directory", path);
    return refuse_kind(L, path);
}

/* --- reading ------------------------------------------------------------- */

static const char INPUT[] = "lumat.input";

static int close_input(lua_State *L)
{
    lumat_input *in = luaL_checkudata(L, 1, INPUT);
    lumat_end_file(in->began);
    in->began = 0;
    if (in->fd >= 0)
        close(in->fd);
    in->fd = -1;
    return 0;
}

void lumat_open_inputs(lua_State *L)
{
    luaL_newmetatable(L, INPUT);
    lua_pushcfunction(L, close_input);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__gc");
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
}

static int refuse_input(lua_State *L, const char *path, int error)
{
    if (error == ENOENT || error == ENOTDIR)
        return lumat_refuse_file(L, path);
    return lumat_raise(L, "load: cannot read '%s': %s", path,
                       lumat_error_text(error));
}

lumat_input *lumat_push_input(lua_State *L, const char *path)
{
    lumat_input *in = lua_newuserdatauv(L, sizeof *in, 0);
    *in = (lumat_input){.fd = -1, .path = path};
    luaL_setmetatable(L, INPUT);
    lua_toclose(L, -1);
    in->fd = lumat_open_regular(path, &in->size);
    if (in->fd < 0)
        refuse_input(L, path, errno);
    if (in->size == 0)
        lumat_raise(L, "load: '%s' is empty", path);
    return in;
}

void lumat_read_input(lua_State *L, const lumat_input *in, size_t at,
                      void *bytes, size_t length)
{
    char *to = bytes;
    while (length > 0) {
        size_t part = length < PART ? length : PART;
        ssize_t n = pread(in->fd, to, part, (off_t)at);
        if (n < 0 && errno != EINTR)
            refuse_input(L, in->path, errno);
        if (n == 0)
            lumat_raise(L, "load: '%s' became shorter while it was read",
                        in->path);
        if (n > 0) {
            at += (size_t)n;
            to += n;
            length -= (size_t)n;
            gpu_advance(n);
        }
        lumat_poll(L, 0);
    }
}

void lumat_begin_input(lumat_input *in, size_t bytes)
{
    lumat_end_file(in->began);
    in->began = lumat_begin_file("load", in->path, bytes);
}

char *lumat_push_input_text(lua_State *L, lumat_input *in)
{
    char *text = lua_newuserdatauv(L, in->size, 0);
    lumat_begin_input(in, in->size);
    lumat_read_input(L, in, 0, text, in->size);
    return text;
}

/* Whole pages: their neighbours are not the text's. */
void lumat_forget_text(char *text, size_t first, size_t last)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = ((uintptr_t)text + first + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)text + last) / page * page;
    if (start < end)
        madvise((void *)start, end - start, MADV_DONTNEED);
}
