/* Values that are no matrix, as text: strings quoted, tables a level deep; and
 * numbers that came out of f32 matrices as such. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "print.h"
#include "complex_value.h"
#include "function.h"
#include "parse.h"
#include "print_parts.h"
#include "value.h"

/* --- numbers that were f32 ------------------------------------------------ */
/* Which of Lua's floats came out of f32 matrices during an entry. A number of
 * Lua's carries no type, so it is known again by its value: 0.1 as an f32 is
 * no double that one would write. */

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

/* Was the value noted? */
static int is_single(double value)
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

/* --- values --------------------------------------------------------------- */

enum { SHORT_COLUMNS = 40, STACK_NEEDED = 20 };

/* Writes the character at s as it stands in quotes, returns the bytes of s
 * it took. out has room for 8. */
static size_t quote_one(const char *s, size_t left, char *out)
{
    static const char plain[] = "\n\t\r\a\b\f\v\"\\", named[] = "ntrabfv\"\\";
    unsigned char c = (unsigned char)*s;
    const char *found = c == 0 ? NULL : strchr(plain, c);
    size_t n = lumat_shown_length(s, left);
    if (found != NULL) {
        snprintf(out, 8, "\\%c", named[found - plain]);
    } else if (n == 0) {
        snprintf(out, 8, "\\x%02X", c);
    } else {
        memcpy(out, s, n);
        out[n] = '\0';
        return n;
    }
    return 1;
}

/* Pushes the string at index in quotes; when it would take more than `most`
 * columns (0: no limit), its beginning, "… and its length. */
static void push_quoted(lua_State *L, int index, int most)
{
    size_t length, i = 0;
    const char *s = lua_tolstring(L, index, &length);
    char one[8];
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addchar(&b, '"');
    for (int columns = 2; i < length; columns++) {
        size_t used = quote_one(s + i, length - i, one);
        columns += one[0] == '\\' ? (int)strlen(one) - 1 : 0;
        if (most > 0 && columns >= most)
            break;
        luaL_addstring(&b, one);
        i += used;
    }
    if (i < length)
        luaL_addstring(&b, "…");
    luaL_addchar(&b, '"');
    luaL_pushresult(&b);
    if (i < length)
        lua_pushfstring(L, " (%I bytes)", (lua_Integer)length);
    if (i < length)
        lua_concat(L, 2);
}

static lua_Integer count_entries(lua_State *L, int index)
{
    lua_Integer count = 0;
    index = lua_absindex(L, index);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        count++;
    return count;
}

/* The number of the fewest decimal digits that is the same f32; whole numbers
 * as they are. */
static double shorten_single(double x)
{
    char text[LUMAT_NUMBER_ROOM];
    size_t length = lumat_print_f32((float)x, 0, text);
    double shorter = x;
    if (x != floor(x) || fabs(x) >= 1e15)
        lumat_parse_f64(text, length, &shorter);
    return shorter;
}

/* Pushes x with the fewest digits, of 14 to 17, that read back, or with 14. */
static void push_digits(lua_State *L, double x, int reads_back)
{
    char text[40];
    double back = NAN;
    if (lumat_special(x)) {
        lua_pushstring(L, lumat_special(x));
        return;
    }
    if (reads_back && is_single(x))
        x = shorten_single(x);
    for (int digits = 14; digits <= LUMAT_MOST_DIGITS && back != x; digits++) {
        int length = snprintf(text, sizeof text, "%.*g", digits, x);
        lumat_parse_f64(text, (size_t)length, &back);
        if (!reads_back)
            break;
    }
    lua_pushstring(L, text);
}

void lumat_push_complex_text(lua_State *L, gpu_complex z, int reads_back)
{
    int is_negative = signbit(z.im) && !isnan(z.im);
    push_digits(L, z.re, reads_back);
    lua_pushstring(L, is_negative ? " - " : " + ");
    push_digits(L, fabs(z.im), reads_back);
    lua_pushliteral(L, "i");
    lua_concat(L, 4);
}

/* As print writes it, 14 digits and a ".0", but with as many more as it takes
 * to read it back: 0.30000000000000004 and 0.3 are two numbers. */
static void push_float(lua_State *L, double x)
{
    char text[40];
    double back = NAN;
    if (is_single(x))
        x = shorten_single(x);
    for (int digits = 14; digits <= LUMAT_MOST_DIGITS && back != x; digits++) {
        int length = snprintf(text, sizeof text, "%.*g", digits, x);
        lumat_parse_f64(text, (size_t)length, &back);
    }
    lua_pushstring(L, text);
    if (text[strspn(text, "-0123456789")] == '\0')
        lua_pushliteral(L, ".0"), lua_concat(L, 2);
}

/* As print does, but for numbers that are no whole ones, and for functions of
 * the library, whose addresses tell nothing. */
static void push_other(lua_State *L, int index)
{
    double x = lua_tonumber(L, index);
    const gpu_complex *z = lumat_test_complex(L, index);
    const lumat_function *f = lumat_row_of(L, index);
    if (f)
        lua_pushfstring(L, "function %s: ?%s tells more",
                        lumat_push_usage(L, f), f->name),
            lua_remove(L, -2);
    else if (z)
        lumat_push_complex_text(L, *z, 1);
    else if (lua_type(L, index) != LUA_TNUMBER || lua_isinteger(L, index))
        lumat_tolstring(L, index, NULL);
    else if (lumat_special(x))
        lua_pushstring(L, lumat_special(x));
    else
        push_float(L, x);
}

/* Pushes "{1, 2}" for a list of a few numbers and truth values, such as a row
 * of a nested table; returns 0 without it for another table. */
static int push_row(lua_State *L, int index)
{
    int table = lua_absindex(L, index), top = lua_gettop(L);
    lua_Integer length = (lua_Integer)lua_rawlen(L, table);
    if (length == 0 || length > SHORT_COLUMNS / 2 ||
        count_entries(L, table) != length)
        return 0;
    lua_pushliteral(L, "{");
    for (lua_Integer i = 1; i <= length; i++) {
        int type = lua_rawgeti(L, table, i);
        push_other(L, -1);
        lua_remove(L, -2);
        lua_pushstring(L, i < length ? ", " : "}");
        lua_concat(L, 3);
        if ((type != LUA_TNUMBER && type != LUA_TBOOLEAN) ||
            lua_rawlen(L, -1) > SHORT_COLUMNS) {
            lua_settop(L, top);
            return 0;
        }
    }
    return 1;
}

/* Its one line, of an object that has one; else returns 0. */
static int push_own_headline(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    if (lua_type(L, index) != LUA_TTABLE ||
        luaL_getmetafield(L, index, "__headline") == LUA_TNIL)
        return 0;
    lua_pushvalue(L, index);
    lua_call(L, 1, 1);
    return 1;
}

/* A value inside a table. */
static void push_element(lua_State *L, int index)
{
    const gpu_matrix *m = lumat_test_matrix(L, index);
    if (m != NULL && m->storage != NULL) {
        lua_pushfstring(L, "%s ", gpu_dtype_name(m->dtype));
        lumat_push_shape(L, m);
        lua_pushstring(L, m->ndim == 2 ? " matrix" : "");
        lua_concat(L, 3);
    } else if (m != NULL) {
        lua_pushliteral(L, "freed matrix");
    } else if (lumat_look_at_sparse(L, index) != NULL) {
        const gpu_sparse *s = lumat_look_at_sparse(L, index);
        lua_pushfstring(L, "%s %s sparse matrix",
                        gpu_dtype_name(s->values.dtype),
                        gpu_size_text(s->rows, s->cols));
    } else if (lua_type(L, index) == LUA_TSTRING) {
        push_quoted(L, index, SHORT_COLUMNS);
    } else if (push_own_headline(L, index)) {
        return;
    } else if (lua_type(L, index) == LUA_TTABLE) {
        if (!push_row(L, index))
            lua_pushstring(L, count_entries(L, index) > 0 ? "{…}" : "{}");
    } else if (lua_type(L, index) == LUA_TFUNCTION) {
        lua_pushliteral(L, "function");
    } else {
        push_other(L, index);
    }
}

/* --- tables --------------------------------------------------------------- */

/* The text of a table in the making: a stack slot holds what is done. */
typedef struct listing {
    const lumat_style *style;
    int text;       /* the slot */
    int64_t column; /* where the next entry starts */
    int64_t lines;
    lua_Integer shown, total;
} listing;

static int64_t columns_of(const char *s)
{
    int64_t columns = 0;
    for (; *s != '\0'; s++)
        columns += (*s & 0xC0) != 0x80;
    return columns;
}

static void append_top(lua_State *L, const listing *l)
{
    lua_pushvalue(L, l->text);
    lua_insert(L, -2);
    lua_concat(L, 2);
    lua_replace(L, l->text);
}

/* Takes the entry on the top of the stack. Returns 0 when the screen is full
 * and the entry was left out. */
static int add_entry(lua_State *L, listing *l)
{
    int64_t width = columns_of(lua_tostring(L, -1));
    int wraps = l->shown > 0 && l->column + 3 + width > l->style->width;
    if (wraps && l->lines >= lumat_line_limit(l->style)) {
        lua_pop(L, 1);
        return 0;
    }
    lua_pushstring(L, l->shown == 0 ? "" : wraps ? ",\n " : ", ");
    lua_insert(L, -2);
    lua_concat(L, 2);
    append_top(L, l);
    l->column = (wraps ? 1 : l->column + (l->shown > 0 ? 2 : 0)) + width;
    l->lines += wraps;
    l->shown++;
    return 1;
}

static int is_name(const char *s, size_t length)
{
    if (length == 0 || isdigit((unsigned char)s[0]))
        return 0;
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)s[i]) && s[i] != '_')
            return 0;
    }
    return 1;
}

/* Adds "key = value" for the key at the top of the stack, which it takes. */
static int add_pair(lua_State *L, listing *l, int table)
{
    int key = lua_gettop(L);
    int is_string = lua_type(L, key) == LUA_TSTRING;
    size_t length = 0;
    const char *name = is_string ? lua_tolstring(L, key, &length) : NULL;
    if (!is_string) {
        lua_pushliteral(L, "[");
        push_element(L, key);
        lua_pushliteral(L, "]");
        lua_concat(L, 3);
    } else if (is_name(name, length)) {
        lua_pushvalue(L, key);
    } else {
        lua_pushliteral(L, "[");
        push_quoted(L, key, SHORT_COLUMNS);
        lua_pushliteral(L, "]");
        lua_concat(L, 3);
    }
    lua_pushliteral(L, " = ");
    lua_pushvalue(L, key);
    lua_rawget(L, table);
    push_element(L, -1);
    lua_remove(L, -2);
    lua_concat(L, 3);
    int fits = add_entry(L, l);
    lua_settop(L, key - 1);
    return fits;
}

static int add_list(lua_State *L, listing *l, int table, lua_Integer length)
{
    int fits = 1;
    for (lua_Integer i = 1; i <= length && fits; i++) {
        lua_rawgeti(L, table, i);
        push_element(L, -1);
        lua_remove(L, -2);
        fits = add_entry(L, l);
    }
    return fits;
}

/* Is the key at index a string that C can hold? */
static int is_c_string(lua_State *L, int index)
{
    size_t length;
    if (lua_type(L, index) != LUA_TSTRING)
        return 0;
    return strlen(lua_tolstring(L, index, &length)) == length;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Entries named by strings, in the order of their names. */
static int add_named(lua_State *L, listing *l, int table)
{
    size_t count = 0, most = (size_t)l->total;
    const char **names = lua_newuserdatauv(L, sizeof *names * (most + 1), 0);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (is_c_string(L, -2) && count < most)
            names[count++] = lua_tostring(L, -2);
    }
    qsort(names, count, sizeof *names, compare_names);
    int fits = 1;
    for (size_t i = 0; i < count && fits; i++) {
        lua_pushstring(L, names[i]);
        fits = add_pair(L, l, table);
    }
    lua_pop(L, 1);
    return fits;
}

static int add_others(lua_State *L, listing *l, int table, lua_Integer length)
{
    for (lua_pushnil(L); lua_next(L, table);) {
        lua_pop(L, 1);
        lua_Integer i = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
        if (is_c_string(L, -1) || (i >= 1 && i <= length))
            continue;
        lua_pushvalue(L, -1);
        if (!add_pair(L, l, table)) {
            lua_pop(L, 1);
            return 0;
        }
    }
    return 1;
}

static void push_table(lua_State *L, int index, const lumat_style *s)
{
    int table = lua_absindex(L, index);
    lua_Integer length = (lua_Integer)lua_rawlen(L, table);
    lua_pushliteral(L, "{");
    listing l = {.style = s, .text = lua_gettop(L), .column = 1, .lines = 1};
    l.total = count_entries(L, table);
    if (add_list(L, &l, table, length) && add_named(L, &l, table))
        add_others(L, &l, table, length);
    if (l.shown < l.total)
        lua_pushfstring(L, ",\n %s %I more}", s->ascii ? "..." : "…",
                        l.total - l.shown);
    else
        lua_pushliteral(L, "}");
    append_top(L, &l);
}

/* --- any value ----------------------------------------------------------- */

static int speaks_for_itself(lua_State *L, int index)
{
    if (luaL_getmetafield(L, index, "__tostring") == LUA_TNIL)
        return 0;
    lua_pop(L, 1);
    return 1;
}

/* A value of a kind with a name of its own, whose text is a line. */
static int is_object(lua_State *L, int index)
{
    if (luaL_getmetafield(L, index, "__name") == LUA_TNIL)
        return 0;
    lua_pop(L, 1);
    return speaks_for_itself(L, index);
}

void lumat_push_value_text(lua_State *L, int index, const lumat_style *s)
{
    int type = lua_type(L, index);
    luaL_checkstack(L, STACK_NEEDED, NULL);
    if (type == LUA_TSTRING)
        push_quoted(L, index, 0);
    else if (type == LUA_TTABLE && lumat_push_own_text(L, index, s))
        return;
    else if (type == LUA_TTABLE && !speaks_for_itself(L, index))
        push_table(L, index, s);
    else
        push_other(L, index);
}

void lumat_push_value_short(lua_State *L, int index)
{
    luaL_checkstack(L, STACK_NEEDED, NULL);
    if (push_own_headline(L, index))
        return;
    if (lua_type(L, index) == LUA_TTABLE && is_object(L, index)) {
        push_other(L, index);
        return;
    }
    if (lua_type(L, index) == LUA_TTABLE) {
        lua_Integer count = count_entries(L, index);
        lua_pushfstring(L, "table, %I %s", count,
                        count == 1 ? "entry" : "entries");
        return;
    }
    push_element(L, index);
}
