/* The columns of a table as text that is read: their names, which of them are
 * wanted, of what type they are, what is wrong with one, and how a frame has
 * them. */
#include "table_reader.h"

#include "arguments.h"
#include "cancellation.h"
#include "complex_value.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Raises that the table is not as it should be; most messages begin with a
 * line. */
int lumat_table_refuse(lua_State *L, const lumat_table *t, const char *message)
{
    int is_line = *message >= '0' && *message <= '9';
    return lumat_raise(L, is_line ? "load: %s:%s" : "load: '%s' %s",
                       t->in->path, message);
}

/* Pushes the list of names, or nil. */
void lumat_table_push_names(lua_State *L, lumat_table *t)
{
    const lumat_csv *c = &t->c;
    lumat_csv_text name;
    size_t at = c->names;
    if (lua_istable(L, 2) && lua_getfield(L, 2, "header") == LUA_TTABLE) {
        lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
        if (count != c->cols)
            lumat_raise(L, "header: has %I names for the %I columns of '%s'",
                        (LUAI_UACINT)count, (LUAI_UACINT)c->cols, t->in->path);
        lua_createtable(L, (int)count, 0);
        for (lua_Integer j = 1; j <= count; j++) {
            if (lua_rawgeti(L, -2, j) != LUA_TSTRING)
                lumat_raise(L, "header: name %I is %s, not a string",
                            (LUAI_UACINT)j, lumat_push_brief(L, -1));
            lua_rawseti(L, -2, j);
        }
        lua_remove(L, -2);
        t->has_names = 1;
        return;
    }
    if (lua_istable(L, 2))
        lua_pop(L, 1);
    if (!c->has_names) {
        lua_pushnil(L);
        return;
    }
    lua_createtable(L, (int)c->cols, 0);
    for (lua_Integer j = 1; lumat_csv_name(c, t->text, t->used, &at, &name);
         j++) {
        luaL_Buffer b;
        char *to = luaL_buffinitsize(L, &b, name.length + 1);
        luaL_pushresultsize(&b, lumat_csv_unquote(c, name, to));
        lua_rawseti(L, -2, j);
    }
    t->has_names = 1;
}

/* Raises that there is no such column; names: the list, or nil. */
static void refuse_column(lua_State *L, const lumat_table *t, const char *key,
                          const char *wanted, int names)
{
    luaL_Buffer b;
    if (!t->has_names)
        lumat_raise(L,
                    "%s: '%s' has no names: give the column's place in place "
                    "of \"%s\", or {header={names}}",
                    key, t->in->path, wanted);
    luaL_buffinit(L, &b);
    for (lua_Integer j = 1; j <= t->c.cols && j <= 1000; j++) {
        lua_rawgeti(L, names, j);
        luaL_addvalue(&b);
        luaL_addchar(&b, '\n');
    }
    luaL_pushresult(&b);
    lua_pushstring(L, luaL_gsub(L, luaL_gsub(L, lua_tostring(L, -1), " ", "_"),
                                "\n", " "));
    const char *near = lumat_nearest(L, wanted, lua_tostring(L, -1))
                           ? lua_tostring(L, -1)
                           : NULL;
    if (near != NULL)
        lumat_raise(L, "%s: '%s' has no column \"%s\": did you mean \"%s\"?",
                    key, t->in->path, wanted, near);
    lumat_raise(L, "%s: '%s' has no column \"%s\"", key, t->in->path, wanted);
}

/* The place, from 0, of the column that the value on top names. */
static int64_t find_column(lua_State *L, const lumat_table *t, const char *key,
                           int names)
{
    if (lua_type(L, -1) == LUA_TNUMBER) {
        int is_whole;
        lua_Integer j = lua_tointegerx(L, -1, &is_whole);
        if (!is_whole || j < 1 || j > t->c.cols)
            lumat_raise(L, "%s: there is no column %s of the %I of '%s'", key,
                        lua_tostring(L, -1), (LUAI_UACINT)t->c.cols,
                        t->in->path);
        return j - 1;
    }
    if (lua_type(L, -1) != LUA_TSTRING)
        lumat_raise(L, "%s: a column is its name or its place, not %s", key,
                    lumat_push_brief(L, -1));
    for (lua_Integer j = 1; t->has_names && j <= t->c.cols; j++) {
        lua_rawgeti(L, names, j);
        int is_it = lua_rawequal(L, -1, -2);
        lua_pop(L, 1);
        if (is_it)
            return j - 1;
    }
    refuse_column(L, t, key, lua_tostring(L, -1), names);
    return 0;
}

/* columns: which of them, and in which order. */
void lumat_table_choose_columns(lua_State *L, lumat_table *t, int names)
{
    int top = lua_gettop(L);
    int64_t cols = t->c.cols;
    for (int64_t j = 0; j < cols && t->is_whole && !t->is_wide; j++)
        t->chosen[t->chosen_count++] = j;
    if (t->is_whole)
        return;
    lua_getfield(L, 2, "columns");
    for (int64_t j = 0; j < cols; j++)
        t->column[j].is_skipped = 1;
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    if (count == 0)
        lumat_raise(L, "columns: is an empty list");
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, top + 1, i);
        int64_t j = find_column(L, t, "columns", names);
        if (!t->column[j].is_skipped)
            lumat_raise(L, "columns: %s is named twice",
                        lumat_push_brief(L, -1));
        t->column[j].is_skipped = 0;
        t->chosen[t->chosen_count++] = j;
        lua_settop(L, top + 1);
    }
    lua_settop(L, top);
}

/* Takes the type that the value on top stands for. */
static void give_type(lua_State *L, lumat_csv_column *column, int anchor)
{
    static const char *const words[] = {"number", "truth", "date", "text"};
    static const lumat_csv_type types[] = {LUMAT_CSV_NUMBER, LUMAT_CSV_TRUTH,
                                           LUMAT_CSV_DATE, LUMAT_CSV_TEXT};
    const char *word =
        lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    column->is_given = 1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) == 0) {
            column->type = types[i];
            return;
        }
    }
    if (strchr(word, '%') != NULL && lumat_csv_is_date_format(word)) {
        column->type = LUMAT_CSV_DATE;
        column->format = word;
        lua_pushvalue(L, -1);
        lua_rawseti(L, anchor, (lua_Integer)lua_rawlen(L, anchor) + 1);
        return;
    }
    lumat_raise(L,
                "types: %s is none of \"number\", \"truth\", \"date\" and "
                "\"text\", and no format of dates such as \"%%d.%%m.%%Y\"",
                lumat_push_brief(L, -1));
}

/* types: one for all columns, or by names and places. */
static void read_types(lua_State *L, lumat_table *t, int names, int anchor)
{
    int top = lua_gettop(L);
    int type = lua_istable(L, 2) ? lua_getfield(L, 2, "types") : LUA_TNIL;
    if (type == LUA_TSTRING)
        for (int64_t j = 0; j < t->c.cols; j++)
            give_type(L, &t->column[j], anchor);
    if (type == LUA_TTABLE) {
        for (lua_pushnil(L); lua_next(L, top + 1); lua_settop(L, top + 2)) {
            lua_pushvalue(L, -2);
            int64_t j = find_column(L, t, "types", names);
            lua_pop(L, 1);
            give_type(L, &t->column[j], anchor);
        }
    }
    lua_settop(L, top);
}

/* Pushes how an option names the column: age, ["a b"], [3]. */
static const char *push_key(lua_State *L, const lumat_table *t, int64_t col,
                            int names)
{
    if (!t->has_names || names == 0 ||
        lua_rawgeti(L, names, (lua_Integer)col + 1) != LUA_TSTRING)
        return lua_pushfstring(L, "[%I]", (LUAI_UACINT)col + 1);
    const char *name = lua_tostring(L, -1);
    int is_plain = isalpha((unsigned char)*name) || *name == '_';
    for (const char *p = name; *p != '\0'; p++)
        is_plain &= isalnum((unsigned char)*p) || *p == '_';
    return is_plain ? name : lua_pushfstring(L, "[\"%s\"]", name);
}

/* What helps against a cell that is not of its column's type. */
static const char *push_advice(lua_State *L, const lumat_table *t,
                               const lumat_csv_chunk *k, int names)
{
    lumat_csv_type type =
        t->is_wide ? t->c.same.type : t->column[k->bad_col].type;
    const char *key = push_key(L, t, k->bad_col, names);
    if (t->as == 'm')
        return "a matrix has numbers alone: {as=\"frame\"} takes the others, "
               "{columns={…}} leaves them out";
    const char *quote = strchr(k->message, '"');
    if (quote != NULL && type == LUMAT_CSV_NUMBER && t->c.decimal == '.' &&
        strchr(quote, ',') != NULL)
        return "decimals take a point, not a comma, unless {decimal=\",\"} is "
               "given";
    if (t->row + k->rows == 0 && t->c.header != LUMAT_HEADER_YES)
        return "for a line of names give {header=true}";
    return lua_pushfstring(
        L,
        "the cells above it are %s: leave it empty, name it in {na=}, or give "
        "{types={%s=\"text\"}}",
        type == LUMAT_CSV_TRUTH  ? "truths"
        : type == LUMAT_CSV_DATE ? "dates"
                                 : "numbers",
        key);
}

/* Raises what a chunk failed with. */
void lumat_table_refuse_chunk(lua_State *L, const lumat_table *t,
                              const lumat_csv_chunk *k, int names)
{
    long long line = (long long)(t->line + k->bad_line);
    char message[2 * LUMAT_MESSAGE];
    if (k->bad_col < 0) {
        snprintf(message, sizeof message, "%lld: %s", line, k->message);
        lumat_table_refuse(L, t, message);
    }
    int is_type = strstr(k->message, "\" is not ") != NULL;
    const char *advice = is_type ? push_advice(L, t, k, names) : NULL;
    snprintf(message, sizeof message, "%lld: column %lld: %s%s%s%s", line,
             (long long)k->bad_col + 1, k->message, advice ? " (" : "",
             advice ? advice : "", advice ? ")" : "");
    lumat_table_refuse(L, t, message);
}

/* Decides the columns' types, and what the result is. */
void lumat_table_find_types(lua_State *L, lumat_table *t, int names, int anchor)
{
    lumat_csv *c = &t->c;
    read_types(L, t, names, anchor);
    int is_given = t->dtype != GPU_ALL_DTYPES;
    int is_complex = is_given && gpu_dtype_is_complex(t->dtype);
    if (!is_complex)
        is_complex = lumat_csv_find_types(c, t->text, t->used);
    int64_t other = -1;
    for (int64_t j = 0; j < c->cols && !t->is_wide; j++) {
        lumat_csv_type type = c->column[j].type;
        if (!c->column[j].is_skipped && other < 0 &&
            (type == LUMAT_CSV_TEXT || type == LUMAT_CSV_DATE))
            other = j;
    }
    t->is_frame = t->as == 'f' || (other >= 0 && t->as != 'm');
    for (int64_t j = 0; other >= 0 && !t->is_frame && j < c->cols; j++) {
        lumat_csv_column *column = &c->column[j];
        if (column->type != LUMAT_CSV_TEXT && column->type != LUMAT_CSV_DATE)
            continue;
        if (column->is_given)
            lumat_raise(L, "types: a matrix has numbers alone: give "
                           "{as=\"frame\"}");
        column->type = LUMAT_CSV_NUMBER; /* reading it tells what is there */
    }
    if (t->is_frame && t->dtype != GPU_ALL_DTYPES && t->dtype != GPU_F32 &&
        t->dtype != GPU_F64)
        lumat_raise(L, "dtype: the numbers of a frame are f32 or f64, not %s",
                    gpu_dtype_name(t->dtype));
    if (t->is_frame && is_complex)
        lumat_raise(L,
                    "load: '%s' has complex numbers, which a frame does not "
                    "hold: {columns={…}} leaves them out",
                    t->in->path);
    if (is_given)
        is_complex = gpu_dtype_is_complex(t->dtype);
    else if (is_complex)
        t->dtype = gpu_dtype_made_complex(lumat_default_dtype(L));
    c->same = (lumat_csv_column){.type = is_complex ? LUMAT_CSV_COMPLEX
                                                    : LUMAT_CSV_NUMBER};
    for (int64_t j = 0; j < c->cols && !t->is_wide && !t->is_frame; j++) {
        lumat_csv_column *column = &c->column[j];
        if (is_complex)
            column->type = LUMAT_CSV_COMPLEX;
        else if (column->type == LUMAT_CSV_COMPLEX)
            column->type = LUMAT_CSV_NUMBER;
    }
    c->is_exact = !is_given;
    if (t->dtype == GPU_ALL_DTYPES)
        t->dtype =
            t->is_frame || t->needs_f64 ? GPU_F64 : lumat_default_dtype(L);
}

/* --- frames --------------------------------------------------------------- */

/* Pushes the names of the chosen columns, or nil; names: of all, or nil. */
void lumat_table_push_chosen_names(lua_State *L, const lumat_table *t,
                                   int names)
{
    if (!t->has_names || t->is_whole) {
        lua_pushvalue(L, names);
        return;
    }
    lua_createtable(L, (int)t->chosen_count, 0);
    for (int64_t i = 0; i < t->chosen_count; i++) {
        lua_rawgeti(L, names, (lua_Integer)t->chosen[i] + 1);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/* Is the text a number with a decimal comma, or a date with its day or month
 * first? They are texts as long as nobody says what they mean. */
static int is_comma_number(const char *text, size_t length)
{
    size_t commas = 0;
    for (size_t i = 0; i < length; i++) {
        int is_inside = i > 0 && i + 1 < length;
        commas += text[i] == ',' && is_inside;
        if (!isdigit((unsigned char)text[i]) &&
            !(is_inside && text[i] == '.') && !(is_inside && text[i] == ',') &&
            !(i == 0 && text[i] == '-'))
            return 0;
    }
    return commas == 1;
}

/* The options by which a number with a comma is read; NULL: none are known. */
static const char *marks_of(const char *number, char delimiter)
{
    const char *comma = strchr(number, ','), *point = strchr(number, '.');
    if (delimiter == ',' || (point != NULL && point > comma))
        return strspn(comma + 1, "0123456789") == 3 ? "thousands=\",\"" : NULL;
    return point != NULL ? "decimal=\",\", thousands=\".\"" : "decimal=\",\"";
}

static int is_common_date(const char *text, size_t length)
{
    double seconds;
    return lumat_csv_read_date(text, length, "%d.%m.%Y", &seconds) ||
           lumat_csv_read_date(text, length, "%m/%d/%Y", &seconds) ||
           lumat_csv_read_date(text, length, "%d/%m/%Y", &seconds);
}

/* Notes at the prompt what the first label of a column may be. */
static void note_label(lua_State *L, const lumat_table *t,
                       const lumat_label *label, int names)
{
    const char *text = t->labels.bytes + label->at;
    int64_t j = label->column;
    if (label->code != 1 || label->length > 20 || t->column[j].is_given)
        return;
    lua_pushlstring(L, text, label->length);
    const char *shown = lua_tostring(L, -1);
    const char *marks = is_comma_number(text, label->length)
                            ? marks_of(shown, t->c.delimiter)
                            : NULL;
    if (marks != NULL)
        lumat_note(L, "decimal",
                   lua_pushfstring(L,
                                   "texts such as \"%s\" are read as numbers "
                                   "by load(…, {%s})",
                                   shown, marks));
    if (is_common_date(text, label->length))
        lumat_note(L, "dates",
                   lua_pushfstring(L,
                                   "texts such as \"%s\" are read as dates by "
                                   "load(…, {types={%s=\"%s\"}})",
                                   shown, push_key(L, t, j, names),
                                   strchr(text, '.') != NULL ? "%d.%m.%Y"
                                                             : "%m/%d/%Y"));
}

/* Sets labels in each description of a column of texts, all in the list at
 * `list`. */
static void set_labels(lua_State *L, const lumat_table *t, int list, int names)
{
    lua_newtable(L); /* lists of labels, by the file's columns */
    for (int64_t i = 0; i < t->chosen_count; i++) {
        int64_t j = t->chosen[i];
        if (t->column[j].type != LUMAT_CSV_TEXT)
            continue;
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        lua_createtable(L, (int)t->label_count[j], 0);
        lua_pushvalue(L, -1);
        lua_rawseti(L, list + 1, (lua_Integer)j + 1);
        lua_setfield(L, -2, "labels");
        lua_pop(L, 1);
    }
    int64_t column = -1;
    for (size_t n = 0; n < t->labels.count; n++) {
        const lumat_label *label = &t->labels.list[n];
        if (label->column != column) {
            column = label->column;
            lua_settop(L, list + 1);
            note_label(L, t, label, names);
            lua_settop(L, list + 1);
            lua_rawgeti(L, list + 1, (lua_Integer)column + 1);
        }
        lua_pushlstring(L, t->labels.bytes + label->at, label->length);
        lua_rawseti(L, -2, label->code);
        lumat_poll(L, (int64_t)n);
    }
    lua_settop(L, list);
}

/* Pushes the format that shows all of a column's dates. */
static void push_format(lua_State *L, const lumat_table *t, int64_t j)
{
    int has = t->finest[j];
    if (t->column[j].format != NULL)
        lua_pushstring(L, t->column[j].format);
    else
        lua_pushfstring(L, "%%Y-%%m-%%d%s%s%s",
                        has & LUMAT_DATE_T         ? "T"
                        : has & LUMAT_DATE_MINUTES ? " "
                                                   : "",
                        has & LUMAT_DATE_MINUTES ? "%H:%M" : "",
                        has & LUMAT_DATE_SECONDS ? ":%S" : "");
}

/* Pushes the list that frames are made of. */
void lumat_table_push_columns(lua_State *L, const lumat_table *t, int parts,
                              int names)
{
    lua_createtable(L, (int)t->chosen_count, 0);
    int list = lua_gettop(L);
    for (int64_t i = 0; i < t->chosen_count; i++) {
        int64_t j = t->chosen[i];
        lumat_csv_type type = t->column[j].type;
        lua_createtable(L, 0, 4);
        if (t->has_names)
            lua_rawgeti(L, names, (lua_Integer)j + 1);
        else
            lua_pushfstring(L, "column%I", (LUAI_UACINT)j + 1);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, type == LUMAT_CSV_TEXT   ? "text"
                          : type == LUMAT_CSV_DATE ? "date"
                                                   : "number");
        lua_setfield(L, -2, "kind");
        lua_rawgeti(L, parts, (lua_Integer)i + 1);
        lua_setfield(L, -2, type == LUMAT_CSV_TEXT ? "codes" : "values");
        if (type == LUMAT_CSV_DATE) {
            push_format(L, t, j);
            lua_setfield(L, -2, "format");
        }
        lua_rawseti(L, list, (lua_Integer)i + 1);
    }
    set_labels(L, t, list, names);
}
