/* load and save: what they are called with, which format a file has, and what
 * is wrong with a file that has none of them. */
#include "table_files.h"
#include "formats.h"
#include "data_formats.h"
#include "fence.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the table ------------------------------------------------------------ */

static int begins(const unsigned char *head, size_t length, const char *with,
                  size_t n)
{
    return length >= n && memcmp(head, with, n) == 0;
}

static int is_npy(const unsigned char *head, size_t length)
{
    return begins(head, length, "\x93NUMPY", 6);
}

static int is_hdf(const unsigned char *head, size_t length)
{
    return begins(head, length, "\x89HDF\r\n\x1a\n", 8);
}

static int is_market(const unsigned char *head, size_t length)
{
    return lumat_mtx_is((const char *)head, length);
}

static int is_zip(const unsigned char *head, size_t length)
{
    return begins(head, length, "PK\3\4", 4) ||
           begins(head, length, "PK\5\6", 4); /* of no parts */
}

#define TEXT_READS(rows)                                                      \
    "header delimiter columns types na skip comment decimal thousands quote " \
    "fill " rows "as dtype device"

/* What a file's first bytes tell counts more than how its name ends. */
static const lumat_format formats[] = {
    {.name = "a .csv file",
     .about =
         "cells between commas, semicolons, tabs, bars or blanks, which is "
         "found out: a matrix and the names in the first line, f64 where "
         "f32 would round its integers, or a frame where a column is text "
         "or dates",
     .endings = ".csv",
     .load = lumat_load_csv,
     .save = lumat_save_csv,
     .reads = TEXT_READS("rows "),
     .blocks = lumat_csv_blocks,
     .block_reads = TEXT_READS(""),
     .writes = "header delimiter decimal na digits",
     .holds = LUMAT_HOLDS_FRAMES,
     .writes_delimiter = ','},
    {.name = "a .tsv file",
     .about = "the same between tabs",
     .endings = ".tsv",
     .load = lumat_load_csv,
     .save = lumat_save_csv,
     .reads = TEXT_READS("rows "),
     .blocks = lumat_csv_blocks,
     .block_reads = TEXT_READS(""),
     .writes = "header delimiter decimal na digits",
     .holds = LUMAT_HOLDS_FRAMES,
     .delimiter = '\t',
     .writes_delimiter = '\t'},
    {.name = "a .txt file",
     .about = "the same, written with blanks",
     .endings = ".txt",
     .load = lumat_load_csv,
     .save = lumat_save_csv,
     .reads = TEXT_READS("rows "),
     .blocks = lumat_csv_blocks,
     .block_reads = TEXT_READS(""),
     .writes = "header delimiter decimal na digits",
     .holds = LUMAT_HOLDS_FRAMES,
     .writes_delimiter = ' '},
    {.name = "a .npy file",
     .about = "NumPy's arrays: a matrix or a vector, of three dimensions a "
              "list of matrices, of texts a list of strings; integers and f16 "
              "are f32 where that is exact, else f64",
     .endings = ".npy",
     .is = is_npy,
     .load = lumat_load_npy,
     .save = lumat_save_npy,
     .holds = LUMAT_HOLDS_TABLES,
     .reads = "rows dtype device",
     .blocks = lumat_npy_blocks,
     .block_reads = "dtype device",
     .writes = ""},
    {.name = "a .npz file",
     .about = "NumPy's archives: a table of names; what SciPy keeps of a "
              "sparse matrix is one, and written of one",
     .endings = ".npz",
     .is = is_zip,
     .load = lumat_load_npz,
     .save = lumat_save_npz,
     .holds = LUMAT_HOLDS_TABLES | LUMAT_HOLDS_SPARSE,
     .reads = "names dtype device",
     .writes = "compress"},
    {.name = "a .mtx file",
     .about = "Matrix Market's matrices of every kind: sparse ones of entries, "
              "dense ones of all elements",
     .endings = ".mtx",
     .is = is_market,
     .load = lumat_load_market,
     .save = lumat_save_market,
     .holds = LUMAT_HOLDS_SPARSE,
     .reads = "dtype device",
     .writes = "digits"},
    {.name = "a .mat file",
     .about = "MATLAB's values, a table of names: versions 4 to 7.3, written "
              "is 5. A matrix has two dimensions, of one element it is a "
              "number or true or false; structures are tables, cells lists",
     .endings = ".mat",
     .is = lumat_mat_is,
     .load = lumat_load_mat,
     .save = lumat_save_mat,
     .holds = LUMAT_HOLDS_TABLES | LUMAT_HOLDS_SPARSE,
     .reads = "names dtype device",
     .writes = ""},
    {.name = "a .h5 file",
     .about = "HDF5's datasets, a table of names, of a group one in it; arrays "
              "are as in .npy files, what MATLAB wrote is as in .mat files; of "
              "what Octave wrote each variable is a group, its matrix the "
              "field value",
     .endings = ".h5 .hdf5",
     .is = is_hdf,
     .load = lumat_load_hdf,
     .reads = "names dtype device"},
    {.name = "a .png file",
     .about = "images: of grey a matrix from 0, black, to 1, white; of colours "
              "a table of matrices r, g, b and, where it is there, a",
     .endings = ".png",
     .is = lumat_png_is,
     .load = lumat_load_png,
     .save = lumat_save_png,
     .holds = LUMAT_HOLDS_TABLES,
     .reads = "dtype device",
     .writes = "low high palette bits"},
    {.name = "a .pgm or .ppm file",
     .about = "the same",
     .endings = ".pgm .ppm .pbm .pnm",
     .is = lumat_pnm_is,
     .is_weak = 1,
     .load = lumat_load_pnm,
     .save = lumat_save_pnm,
     .holds = LUMAT_HOLDS_TABLES,
     .reads = "dtype device",
     .writes = "low high palette bits"},
    {.name = "a .jpg file",
     .about = "the same",
     .endings = ".jpg .jpeg",
     .is = lumat_jpeg_is,
     .load = lumat_load_jpeg,
     .reads = "dtype device"},
    {.name = "a file of raw bytes",
     .about = "elements of which {shape = {rows, cols}, dtype = \"f32\"} says "
              "what they are, whatever the name",
     .endings = ".bin .raw",
     .load = lumat_load_raw,
     .save = lumat_save_raw,
     .reads = "shape dtype order offset byteorder rows device",
     .writes = "order"},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Steps through words with blanks between them: begins with *end == words. */
static int next_word(const char **word, const char **end)
{
    *word = *end + strspn(*end, " ");
    *end = *word + strcspn(*word, " ");
    return *end > *word;
}

int lumat_has_ending(const char *path, const char *ending, size_t n)
{
    size_t length = strlen(path);
    return length > n && strncasecmp(path + length - n, ending, n) == 0;
}

/* Which name of a packed file, "a.mtx.gz", ends as what is in it? */
static int ends_as(const char *path, const char *endings)
{
    enum { GZ = 3 };
    char inner[PATH_MAX];
    const char *word, *end = endings;
    size_t length = strlen(path);
    if (lumat_has_ending(path, ".gz", GZ) && length - GZ < sizeof inner) {
        memcpy(inner, path, length - GZ);
        inner[length - GZ] = '\0';
        path = inner;
    }
    while (next_word(&word, &end))
        if (lumat_has_ending(path, word, (size_t)(end - word)))
            return 1;
    return 0;
}

static const lumat_format *find_by_name(const char *path)
{
    for (int i = 0; i < FORMATS; i++)
        if (ends_as(path, formats[i].endings))
            return &formats[i];
    return NULL;
}

static const lumat_format *find_by_bytes(const lumat_input *in,
                                         const lumat_format *named)
{
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].is != NULL && !(formats[i].is_weak && named != NULL) &&
            formats[i].is(in->head, in->head_length))
            return &formats[i];
    return NULL;
}

int lumat_is_data_name(const char *name)
{
    return find_by_name(name) != NULL;
}

const char *lumat_data_endings(void)
{
    static char all[256];
    if (*all != '\0')
        return all;
    for (int i = 0; i < FORMATS; i++) {
        strcat(all, i > 0 && *formats[i].endings ? " " : "");
        strcat(all, formats[i].endings);
    }
    return all;
}

/* --- what is no file of ours ---------------------------------------------- */

enum { MOST_SEEN = 10000, MOST_NAMED = 3 };

/* What others write, and how it comes here. */
static const char *const foreign[][2] = {
    {".lum", "a saved session: load_session(\"%s\") reads it"},
    {".lua", "a script: dofile(\"%s\") runs it"},
    {".xlsx", "a spreadsheet: save it there as .csv"},
    {".xls", "a spreadsheet: save it there as .csv"},
    {".ods", "a spreadsheet: save it there as .csv"},
    {".bz2", "compressed: unpack it first"},
    {".xz", "compressed: unpack it first"},
    {".zst", "compressed: unpack it first"},
    {".zip", "compressed: unpack it first"},
    {".parquet", "of Parquet: in Python pandas' to_csv writes it as text"},
    {".pkl", "Python's: there numpy.save(\"a.npy\", array) writes an array"},
    {".pt",
     "PyTorch's: there numpy.save(\"a.npy\", t.numpy()) writes an array"},
};

static const char *find_advice(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof foreign / sizeof *foreign; i++)
        if (strcasecmp(dot, foreign[i][0]) == 0)
            return foreign[i][1];
    return NULL;
}

/* It is there, but not to be read. */
static int refuse_kind(lua_State *L, const char *path)
{
    const char *advice = find_advice(path);
    if (advice != NULL) {
        advice = luaL_gsub(L, advice, "%s", path);
        return lumat_raise(L, "load: '%s' is %s; load reads %s", path, advice,
                           lumat_data_endings());
    }
    return lumat_raise(L,
                       "load: '%s' has none of the endings it knows: %s; name "
                       "a table of numbers .txt",
                       path, lumat_data_endings());
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

/* Raises what is wrong with a path that load cannot read: there is no such
 * file, and what there is in its place; or another program's kind of file. */
int lumat_refuse_file(lua_State *L, const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return refuse_missing(L, path);
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return lumat_raise(L, "load: '%s' is a directory", path);
    return refuse_kind(L, path);
}

/* --- arguments ------------------------------------------------------------ */

/* The path at arg, checked. */
static const char *check_path(lua_State *L, int arg)
{
    size_t length;
    const char *path = luaL_checklstring(L, arg, &length);
    if (strlen(path) != length)
        lumat_raise_argument(L, arg, "has a zero byte in it");
    return lumat_expand_path(L, arg);
}

/* Is the word one of the words with blanks between them? */
static int is_among(const char *wanted, const char *words)
{
    const char *word, *end = words;
    while (next_word(&word, &end))
        if (strlen(wanted) == (size_t)(end - word) &&
            strncmp(word, wanted, (size_t)(end - word)) == 0)
            return 1;
    return 0;
}

/* Pushes "header, dtype and device" of those words; "" of none. */
static void push_list(lua_State *L, const char *words)
{
    const char *word, *end = words;
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int i = 0; next_word(&word, &end); i++) {
        int is_last = end[strspn(end, " ")] == '\0';
        luaL_addstring(&b, i == 0 ? "" : is_last ? " and " : ", ");
        luaL_addlstring(&b, word, (size_t)(end - word));
    }
    luaL_pushresult(&b);
}

/* Raises of an option in the table at arg that the format has no use for. */
static void check_options(lua_State *L, int arg, const char *who,
                          const lumat_format *f, const char *takes)
{
    if (!lua_istable(L, arg))
        return;
    for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1)) {
        const char *name =
            lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
        if (is_among(name, takes))
            continue;
        push_list(L, takes);
        if (*takes == '\0')
            lumat_raise(L, "%s: %s takes no options", who, f->name);
        lumat_raise(L, "%s: %s takes no %s, but %s", who, f->name, name,
                    lua_tostring(L, -1));
    }
}

int lumat_wants(lua_State *L, const char *name)
{
    int top = lua_gettop(L), found = 0;
    if (!lua_istable(L, 2) || lua_getfield(L, 2, "names") != LUA_TTABLE) {
        lua_settop(L, top);
        return 1;
    }
    for (lua_Integer i = 1; !found && lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        found = lua_type(L, -1) == LUA_TSTRING &&
                strcmp(lua_tostring(L, -1), name) == 0;
        lua_pop(L, 1);
    }
    lua_settop(L, top);
    return found;
}

void lumat_check_wanted(lua_State *L, const lumat_input *in, int values)
{
    int top = lua_gettop(L);
    if (!lua_istable(L, 2) || lua_getfield(L, 2, "names") != LUA_TTABLE) {
        lua_settop(L, top);
        return;
    }
    for (lua_Integer i = 1; lua_rawgeti(L, top + 1, i) != LUA_TNIL; i++) {
        if (lua_type(L, -1) != LUA_TSTRING)
            lumat_raise(L, "load: names: element %I is %s, not a string",
                        (LUAI_UACINT)i, lumat_push_brief(L, -1));
        lua_pushvalue(L, -1);
        if (lua_rawget(L, values) == LUA_TNIL)
            lumat_raise(L, "load: '%s' has nothing called '%s'", in->path,
                        lua_tostring(L, -2));
        lua_pop(L, 2);
    }
    lua_settop(L, top);
}

void lumat_push_sorted_names(lua_State *L, int index)
{
    lua_newtable(L);
    int names = lua_gettop(L);
    lua_Integer count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        const char *name = lua_tostring(L, -2);
        lua_Integer at = count++;
        for (; at > 0; at--) {
            lua_rawgeti(L, names, at);
            if (strcmp(lua_tostring(L, -1), name) <= 0)
                break;
            lua_rawseti(L, names, at + 1);
        }
        lua_settop(L, names + 2);
        lua_pushvalue(L, -2);
        lua_rawseti(L, names, at + 1);
    }
}

int lumat_option_digits(lua_State *L, int arg)
{
    int is_integer;
    if (!lua_istable(L, arg))
        return 0;
    int absent = lua_getfield(L, arg, "digits") == LUA_TNIL;
    lua_Integer digits = lua_tointegerx(L, -1, &is_integer);
    lua_pop(L, 1);
    if (absent)
        return 0;
    if (!is_integer || digits < 1 || digits > LUMAT_MOST_DIGITS)
        lumat_raise(L, "digits: needs a whole number from 1 to %d",
                    LUMAT_MOST_DIGITS);
    return (int)digits;
}

int lumat_has_option(lua_State *L, int arg, const char *name)
{
    if (!lua_istable(L, arg))
        return 0;
    int has = lua_getfield(L, arg, name) != LUA_TNIL;
    lua_pop(L, 1);
    return has;
}

void lumat_option_range(lua_State *L, int64_t *first, int64_t *last)
{
    *first = 1;
    *last = INT64_MAX;
    if (!lumat_has_option(L, 2, "rows"))
        return;
    lua_getfield(L, 2, "rows");
    int64_t *const ends[] = {first, last};
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    for (int i = 0; i < 2 && i < count; i++) {
        int is_whole;
        lua_rawgeti(L, -1, i + 1);
        *ends[i] = lua_tointegerx(L, -1, &is_whole);
        if (!is_whole || *ends[i] < 1)
            lumat_raise(L, "rows: %s is no place of a row: they count from 1",
                        lumat_push_brief(L, -1));
        lua_pop(L, 1);
    }
    if (count < 1 || count > 2 || *last < *first)
        lumat_raise(L, "rows: needs a first row and a last one behind it, such "
                       "as {1, 100}, or the first alone");
    lua_pop(L, 1);
}

/* --- load and save -------------------------------------------------------- */

static int load_file(lua_State *L)
{
    const char *path = check_path(L, 1);
    struct stat found;
    lua_settop(L, 2);
    const lumat_format *f = find_by_name(path);
    if (!lumat_has_option(L, 2, "shape") &&
        (find_advice(path) != NULL || (f == NULL && stat(path, &found) != 0)))
        return lumat_refuse_file(L, path);
    const lumat_input *in = lumat_push_input(L, path);
    const lumat_format *told = find_by_bytes(in, f);
    f = told != NULL ? told : f;
    if (lumat_has_option(L, 2, "shape"))
        f = find_by_name("a.raw");
    if (f == NULL)
        return lumat_refuse_file(L, path);
    if (f->load == NULL)
        return lumat_raise(L, "load: %s is written, and not read", f->name);
    check_options(L, 2, "load", f, f->reads);
    return f->load(L, (lumat_input *)in, f);
}

static int load_blocks(lua_State *L)
{
    const char *path = check_path(L, 1);
    int64_t rows = lua_tointeger(L, 2);
    lua_settop(L, 3);
    lua_remove(L, 2); /* path, options: as load has them */
    const lumat_format *f = find_by_name(path);
    if (find_advice(path) != NULL)
        return lumat_refuse_file(L, path);
    lumat_input *in = lumat_push_lasting_input(L, path);
    const lumat_format *told = find_by_bytes(in, f);
    f = told != NULL ? told : f;
    if (f == NULL)
        return lumat_refuse_file(L, path);
    if (f->blocks == NULL)
        return lumat_raise(L,
                           "load_blocks: '%s' is %s, which load reads whole; "
                           "in blocks .csv, .tsv, .txt and .npy files are read",
                           path, f->name);
    check_options(L, 2, "load_blocks", f, f->block_reads);
    return f->blocks(L, in, f, rows);
}

/* As their metatables tell. */
static int is_frame(lua_State *L, int index)
{
    int found = luaL_getmetafield(L, index, "__name");
    int is = found == LUA_TSTRING && strcmp(lua_tostring(L, -1), "frame") == 0;
    lua_pop(L, found != LUA_TNIL);
    return is;
}

/* Raises of a value at 1 that the format does not hold. */
static void check_value(lua_State *L, const lumat_format *f)
{
    if (lumat_look_at_sparse(L, 1) != NULL && !(f->holds & LUMAT_HOLDS_SPARSE))
        lumat_raise(
            L,
            "save: %s holds no sparse matrix: .npz and .mtx files do, or "
            "save(full(S), …)",
            f->name);
    if (is_frame(L, 1) && (f->holds & LUMAT_HOLDS_FRAMES))
        return;
    if (lua_istable(L, 1) && !(f->holds & LUMAT_HOLDS_TABLES))
        lumat_raise(L,
                    "save: %s holds one matrix; a .npz file holds several: "
                    "save({a = A, b = B}, \"f.npz\")",
                    f->name);
}

static const char *push_written_endings(lua_State *L)
{
    const char *all = lua_pushliteral(L, "");
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].save && *formats[i].endings)
            all = lua_pushfstring(L, "%s%s%s", all, *all ? " " : "",
                                  formats[i].endings);
    return all;
}

/* Whatever raises, the unfinished file is a value to be closed, and goes. */
static int save_file(lua_State *L)
{
    /* of a table, a value that knows how to write itself */
    if (lua_istable(L, 1) && luaL_getmetafield(L, 1, "__save") != LUA_TNIL) {
        lua_insert(L, 1);
        lua_call(L, lua_gettop(L) - 1, 0);
        return 0;
    }
    const char *path = check_path(L, 2);
    const lumat_format *f = find_by_name(path);
    lua_settop(L, 3);
    if (f == NULL)
        return lumat_raise(L,
                           "save: '%s' has none of the endings it knows: %s; "
                           "a chart is saved as .svg, .pdf or .png",
                           path, push_written_endings(L));
    if (f->save == NULL)
        return lumat_raise(L, "save: %s is read, and not written", f->name);
    check_options(L, 3, "save", f, f->writes);
    check_value(L, f);
    f->save(L, path, f);
    return 0;
}

static const lumat_option load_options[] = {
    {"dtype",
     "dtype|\"f16\"|\"i8\"|\"i16\"|\"i32\"|\"i64\"|\"u8\"|\"u16\"|\"u32\"|"
     "\"u64\"",
     "what default_dtype says, a frame's f64, or what the file has",
     "element type; of raw bytes that of the file: also \"f16\", \"i8\" to "
     "\"i64\", \"u8\" to \"u64\""},
    {"header", "boolean|\"auto\"|table", "\"auto\", told by its cells",
     "is the first line one of names: true or false; or a list of names, where "
     "the file has none"},
    {"columns", "table", "all of them",
     "which columns of a text, in this order: a list of names or places"},
    {"types", "string|table", "told by the first cell",
     "\"number\", \"truth\", \"date\", \"text\" or a format such as "
     "\"%d.%m.%Y\": by columns, {a=\"text\", [3]=\"date\"}, or for all"},
    {"na", "string|number|table",
     "an empty cell, NA, N/A, #N/A, <NA>, NULL, NaN",
     "which cells are missing: a word, a number or a list of them"},
    {"skip", "size", "0", "lines before the table"},
    {"comment", "string", "none", "the character that begins a comment: \"#\""},
    {"decimal", "string", "\".\"", "the mark before decimals: \",\""},
    {"thousands", "string", "none",
     "the mark between thousands: \".\", \",\", \"'\", \"_\" or a blank; "
     "\",\" may also delimit cells, of which such numbers are in quotes"},
    {"quote", "string|false", "\"\\\"\"",
     "the character around texts, or false: none is"},
    {"fill", "boolean", "false",
     "are short rows filled with what is missing: true"},
    {"rows", "table", "all of them",
     "the first and the last row, {1, 100}, or the first alone, {101}; of a "
     "list of matrices those. No others are read"},
    {"as", "\"matrix\"|\"frame\"", "a frame if there are texts or dates",
     "what a text becomes: \"matrix\" or \"frame\""},
    {"names", "table", "all of them",
     "which arrays of a .npz, .mat or .h5 file: a list of names"},
    {"shape", "table", NULL,
     "of raw bytes: {rows, cols}, of a vector {n}, of a list of k matrices "
     "{k, rows, cols}"},
    {"order", "\"C\"|\"F\"", "\"C\"",
     "of raw bytes: row after row or column after column (\"F\")"},
    {"offset", "size", "0", "of raw bytes: where the elements start"},
    {"byteorder", "\"little\"|\"big\"", "\"little\"",
     "of raw bytes: of each element"},
    {NULL, NULL, NULL, NULL}};

static const lumat_option save_options[] = {
    {"header", "boolean|table", "a frame's names",
     "a list of column names for the first line, or false: none"},
    {"decimal", "string", "\".\"", "the mark before decimals: \",\""},
    {"na", "string", "nan, in a frame nothing", "what stands for NaN"},
    {"digits", "count", "as many as give the same number again",
     "significant digits"},
    {"order", "\"C\"|\"F\"", "\"C\"",
     "of raw bytes: row after row or column after column (\"F\")"},
    {"compress", "boolean", "false", "is a .npz file to be packed: true"},
    {"low", "number", "0", "of images: the value that is black"},
    {"high", "number", "1", "of images: the value that is white"},
    {"palette", "\"heat\"|\"diverging\"", "grey",
     "of images: the colours of heat from low to high, or two-sided ones"},
    {"bits", "count", "8", "of images: of a sample, 8 or 16"},
    {NULL, NULL, NULL, NULL}};

static const lumat_function functions[] = {
    {"load", load_file, 0,
     "path: data {header, delimiter, columns, types, na, skip, comment, "
     "decimal, thousands, quote, fill, rows, as, names, "
     "shape, order, offset, byteorder, dtype, device}",
     "matrix, table or frame or table",
     "Reads a file of data: tables as text (.csv, .tsv, .txt), arrays of "
     "NumPy (.npy, .npz), MATLAB's values (.mat), HDF5 (.h5), Matrix "
     "Market's matrices (.mtx), images (.png, .jpg, .pgm, .ppm), raw bytes "
     "(.bin, .raw). Its "
     "first bytes tell which it is, or how its name ends; what gzip packed is "
     "unpacked. ?formats tells what each gives. A text of numbers gives a "
     "matrix, and second the line of names at its top; one with texts or dates "
     "a frame. The first cell of a column tells its type, and empty ones are "
     "missing (NaN). In every file's name ~/ is your home. One word that is no "
     "Lua is a file's name, and an error says what is wrong with it; "
     "everything else is Lua's own load, for chunks.",
     "(function() save(vec{1, 2}, \"/tmp/lumat-example.npy\") return "
     "load(\"/tmp/lumat-example.npy\") end)()",
     "{1, 2}", .group = "files", .options = load_options},
    {"load_blocks", load_blocks, 0,
     "path: data, n: count {header, delimiter, columns, types, na, skip, "
     "comment, decimal, thousands, quote, fill, as, dtype, device}",
     "function",
     "Reads a .csv, .tsv, .txt or .npy file n rows at a time: for block, names "
     "in load_blocks(\"f.csv\", 1e6) do … end. Each block is what load gives, "
     "and the memory of one is what it takes, however long the file. The types "
     "of a text's columns are those of the first block, and texts have the "
     "same codes in all.",
     "(function() save(mat{{1, 2}, {3, 4}, {5, 6}}, \"/tmp/lumat-example.csv\")"
     " local rows = {} for A in load_blocks(\"/tmp/lumat-example.csv\", 2) do "
     "rows[#rows + 1] = A.rows end return vec(rows) end)()",
     "{2, 1}", .group = "files", .options = load_options},
    {"save", save_file, 1,
     "A: matrix|sparse|frame|table, path: data {header, delimiter, decimal, "
     "na, digits, compress, order, low, high, palette, bits}",
     "nothing",
     "Writes a file of data: a matrix or a frame as text (.csv, .tsv, .txt), "
     "arrays of NumPy (.npy; .npz of a table of names or a sparse matrix), "
     "MATLAB's values (.mat of a table of names), Matrix Market's matrices "
     "(.mtx), images (.png, .pgm, .ppm), raw bytes (.bin, .raw). With .gz "
     "behind its name a file is packed. A chart becomes a picture (.svg, .png, "
     ".pdf). The file is replaced whole or not at all. ?formats tells what "
     "each "
     "holds.",
     "(function() save(mat{{1, 2}, {3, 4}}, \"/tmp/lumat-example.csv\") return "
     "load(\"/tmp/lumat-example.csv\") end)()",
     "{{1, 2}, {3, 4}}", .group = "files", .options = save_options},
    {0}};

/* Pushes a list of the formats for the help: endings, about, reads, writes; of
 * what cannot be read, or written, there is no options' list. */
static void push_formats(lua_State *L)
{
    lua_createtable(L, FORMATS, 0);
    for (int i = 0; i < FORMATS; i++) {
        const lumat_format *f = &formats[i];
        lua_createtable(L, 0, 4);
        lua_pushstring(L, f->endings);
        lua_setfield(L, -2, "endings");
        lua_pushstring(L, f->about);
        lua_setfield(L, -2, "about");
        lua_pushstring(L, f->load != NULL ? f->reads : NULL);
        lua_setfield(L, -2, "reads");
        lua_pushstring(L, f->save != NULL ? f->writes : NULL);
        lua_setfield(L, -2, "writes");
        lua_rawseti(L, -2, i + 1);
    }
}

void lumat_open_files(lua_State *L)
{
    lumat_open_streams(L);
    lumat_open_images(L);
    lumat_open_csv(L);
    lumat_register(L, functions);
    push_formats(L);
    lumat_set_required(L, "formats");
}
