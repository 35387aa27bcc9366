/* Habits from other languages: lines that are no Lua, or another Lua than was
 * meant, and what to write instead. */
#include "cancellation.h"
#include "diagnose_parts.h"
#include "parse.h"
#include "scope.h"
#include "value.h"

#include "lauxlib.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct line {
    const char *start, *end;
} line;

/* The number between the last ":" pair before the message's text, as in
 * "exp.lua:12: unexpected symbol"; 0 when there is none. */
static int line_number(const char *message)
{
    for (const char *p = strchr(message, ':'); p; p = strchr(p + 1, ':')) {
        char *end;
        long n = strtol(p + 1, &end, 10);
        if (end > p + 1 && *end == ':')
            return (int)n;
    }
    return 0;
}

static line find_line(const char *text, size_t length, int number)
{
    line l = {text, text + length};
    while (--number > 0) {
        const char *next = memchr(l.start, '\n', (size_t)(l.end - l.start));
        if (!next)
            break;
        l.start = next + 1;
    }
    const char *end = memchr(l.start, '\n', (size_t)(l.end - l.start));
    if (end)
        l.end = end;
    return l;
}

/* --- the table ------------------------------------------------------------ */

/* A habit shows in a line whose words are those of the pattern:
 *   ^ $    the line's beginning and end, or a semicolon's
 *   NAME NUM STR   one of these; OPERAND: what an operand may end with; VALUE:
 *          what it may begin with; FUNC and HELD: names of a function and of a
 *          matrix; OP: an operator
 *   SLICE  a colon that calls no method
 *   PRIME  a quote behind an operand: A'
 *   TRUTH  True, None and so on, if they are nil; FORMAT: f, if it is nil
 *   IMAG UNDERSCORED BINARY DOTTED   numbers such as 2i 1_000 0b11 1..9
 *   ...    words up to what follows, brackets closed
 *   a|b    either word; others stand for themselves
 *   ~x     x, with no blank before it
 * In the advice %1 is what the first of those in capitals, or ..., was.
 * Without a message the pattern is of what can never be Lua; else it holds
 * where the error's message is such a one of Lua's, AT a token. The first that
 * holds is told. */
typedef struct said {
    int kind; /* lumat_lua_message, or one of those below */
    const char *token;
} said;

typedef struct habit {
    const said *message;
    const char *pattern, *advice;
} habit;

enum { ANY_ERROR = -1, NO_ERROR = -2 };

#define SAYS(name) (&(const said){LUMAT_LUA_##name, NULL})
#define AT(name, token) (&(const said){LUMAT_LUA_##name, token})
#define ANY (&(const said){ANY_ERROR, NULL})
#define NOTE (&(const said){NO_ERROR, NULL}) /* it runs */

static const habit habits[] = {
    /* ways to measure and to look */
    {AT(SYMBOL, "%"), "^ % % timeit|time",
     "a command measures one entry: :bench f(), "
     ":time f()"},
    {AT(SYMBOL, "%"), "^ % timeit ...", "repeated timing is :bench %1"},
    {AT(SYMBOL, "%"), "^ % time ...", "timing is :time %1"},
    {NULL, "^ clear all", "a new session begins with :quit and another start"},
    {NULL, "^ clear|del NAME", "a variable is gone with %1 = nil"},
    {NULL, "^ hold|close NAME",
     "plot(x, y) draws at once, and every time "
     "anew"},
    {AT(SYMBOL, "%"), "^ % who|whos", "your variables are listed by :who"},
    {AT(SYMBOL, "%"), "^ % run ...", "a script is run by :run %1"},
    {AT(SYMBOL, "%"), "^ % cd|ls|pwd|history|edit|reset|save|load|quit",
     "a command begins with a colon, as :ls; :help lists them"},
    {NULL, "^ @ time ...", "timing is :time %1"},
    {NULL, "^ @ btime|benchmark ...", "repeated timing is :bench %1"},
    {NULL, "^ tic ;", "timing is :time f(), or clock() before and after"},
    {SAYS(NEAR), "^ tic $", "timing is :time f(), or clock() before and after"},

    /* comments */
    {NULL, "^ # include", "modules come by require \"name\""},
    {NULL, "^ # NAME NAME", "a comment begins with --"},
    {NULL, "^ # !", "a comment begins with --"},
    {AT(SYMBOL, "//"), "^ //", "a comment begins with --"},
    {AT(SYMBOL, "/"), "^ / *",
     "a comment begins with --, a long one is --[[ … ]]"},
    {AT(SYMBOL, "%"), "^ %", "a comment begins with --"},

    /* functions */
    {NULL, "function NAME = NAME (",
     "a function is function %2(x) … return "
     "%1 end"},
    {NULL, "function [ ... ] = NAME (",
     "a function is function %2(x) … "
     "return %1 end"},
    {NULL, "function NAME ( ... ) =",
     "a function is function %1(%2) return … "
     "end"},
    {NULL, "function NAME ( ... ) {|:", "a function is function %1(%2) … end"},
    {NULL, "^ def|fn|func|fun|sub|proc NAME ( ... )",
     "a function is function %1(%2) … end"},
    {NULL, "lambda NAME", "a function is function(%1) return … end"},
    {NULL, "NAME - ~>", "a function is function(%1) return … end"},
    {NULL, ") - ~>", "a function is function(x) return … end"},
    {NULL, "= >", "a function is function(x) return … end"},
    {NULL, "OPERAND @ VALUE", "the product of matrices is %1 * %2"},
    {NULL, "@ ( ... )", "a function is function(%1) return … end"},
    {NULL, "@ NAME $", "a function's name is enough: %1"},
    /* indices */
    {NULL, "NAME SLICE FUNC $", "a method is called as %1:%2()"},
    {NULL, "NAME SLICE FUNC )", "a method is called as %1:%2()"},
    {NULL, "OPERAND SLICE FUNC $", "a method is called as A:%2()"},
    {NULL, "OPERAND SLICE FUNC )", "a method is called as A:%2()"},
    {NULL, "OPERAND : t|T", "the transpose of A is A.T"},
    {NULL, "OPERAND [ ... SLICE ... ]",
     "a block is %1[\"%2:%3\"]: slices are "
     "texts, first:last:step"},
    {NULL, "OPERAND [ end ... ]",
     "the last is %1[-1], or in a slice "
     "%1[\"end%2\"]"},
    {NULL, "OPERAND [ ... , end ]",
     "the last is -1, or in a slice "
     "%1[\"%2, end\"]"},
    {NULL, "OPERAND [ ... , ... ]",
     "an element is %1[{%2, %3}], a block "
     "A[\"1:2, 3:4\"]"},
    {NULL, "FUNC ( ... VALUE SLICE VALUE SLICE VALUE",
     "numbers from %3 to %5 by %4 are range(%3, %5, %4)"},
    {NULL, "FUNC ( ... VALUE SLICE VALUE",
     "numbers from %3 to %4 are "
     "range(%3, %4)"},
    {NULL, "NAME ( ... SLICE ... )",
     "a block is %1[\"%2:%3\"]: slices are "
     "texts in brackets, first:last:step"},
    {NULL, "NAME ( end ... )", "the last is %1(-1), in a slice %1[\"end%2\"]"},
    {NULL, "NAME ( ... , end )", "the last is -1, in a slice %1[\"%2, end\"]"},
    {NULL, "HELD ( ... ) =",
     "an element is assigned with A[{1, 2}] = 3, a "
     "row with A[1] = 0"},
    {NULL, "^ NAME ( NAME ) =",
     "a function is function %1(%2) return … end, an element A[{i}] = 3"},
    {NULL, "^ NAME ( NAME , NAME ) =",
     "a function is function %1(%2, %3) return … end, an element A[{i, j}] = "
     "3"},
    {NULL, "OPERAND ( ... ) =",
     "an element is assigned with A[{1, 2}] = 3, a "
     "row with A[1] = 0"},

    {NULL, "{ STR :", "a table's fields are {a = 1, b = 2}"},
    {NULL, "{ NAME SLICE", "a table's fields are {%1 = …}"},
    {NULL, "^ for (", "a loop is for i = 1, 10 do … end"},
    /* numbers from to */
    /* with a body at once, as in one line of MATLAB */
    {NULL, "for NAME = VALUE SLICE VALUE SLICE NUM NAME",
     "a loop is for %1 = %2, %4, %3 do … end: first, last, step"},
    {NULL, "for NAME = VALUE SLICE NUM NAME",
     "a loop is for %1 = %2, %3 do … end"},
    {NULL, "for NAME = VALUE SLICE VALUE SLICE ...",
     "a loop is for %1 = %2, %4, %3 do … end: first, last, step"},
    {NULL, "for NAME = VALUE SLICE ...", "a loop is for %1 = %2, %3 do … end"},
    {NULL, "=|(|, VALUE SLICE VALUE SLICE ...",
     "numbers from %1 to %3 by %2 are range(%1, %3, %2)"},
    {NULL, "=|(|, VALUE SLICE ...", "numbers from %1 to %2 are range(%1, %2)"},
    {NULL, "^ VALUE SLICE VALUE SLICE VALUE",
     "numbers from %1 to %3 by %2 are range(%1, %3, %2)"},
    {NULL, "^ NUM SLICE ...", "numbers from %1 to %2 are range(%1, %2)"},
    {NULL, "DOTTED", "numbers from 1 to 10 are range(1, 10)"},
    {NULL, "IMAG", "the imaginary unit is im: 3 + 2 * im"},
    {NULL, "UNDERSCORED", "a number has no _ in it"},
    {NULL, "BINARY", "a number of another base is tonumber(\"101\", 2)"},

    /* assignment */
    {NULL, "HELD + ~= ...",
     "Lua has no +=: write %1 = %1 + %2, or "
     "%1:add_(%2) in place"},
    {NULL, "HELD - ~= ...",
     "Lua has no -=: write %1 = %1 - %2, or "
     "%1:sub_(%2) in place"},
    {NULL, "OPERAND * * ~= ...", "Lua has no **=: write %1 = %1 ^ %2"},
    {NULL, "OPERAND OP ~= ...", "Lua has no %2=: write %1 = %1 %2 %3"},
    {NULL, "OPERAND + ~+", "Lua has no ++: write %1 = %1 + 1"},
    {NULL, "+ ~+ NAME", "Lua has no ++: write %1 = %1 + 1"},
    {NULL, "NAME : ~=", "an assignment is %1 = …"},
    {AT(SYMBOL, "["), "^ [ ... ] = size ( NAME )",
     "sizes are %1 = %2.rows, %2.cols"},
    {AT(SYMBOL, "["), "^ [ ... ] = eig|eigh ( ...",
     "both are values, vectors = eig(A):unpack()"},
    {AT(SYMBOL, "["), "^ [ ... ] = svd|qr|lu|chol|schur|hess|ldl ( ...",
     "several values are the parts: %1 = …:unpack()"},
    {AT(SYMBOL, "["), "^ [ ... ] =", "several values are assigned by %1 = …"},
    {NULL, "^ let|var|const|int|double|float|auto|bool|my NAME =",
     "a variable is made by %1 = …, in a function by local %1 = …"},
    {NULL, "^ global NAME", "without local a variable is global: %1 = …"},

    /* conditions, in which = may have been meant for == */
    {AT(THEN, "="), "", "equal is ==, and = assigns"},
    {AT(BRACKET, "="), "if|while|elseif ( ... =",
     "equal is ==, and a condition is if x == 1 then … end"},
    {AT(BRACKET, "="),
     "NAME ( ... , NAME =", "options stand in a table: %1(%2, {%3 = …})"},
    {AT(BRACKET, "="), "NAME ( NAME =",
     "options stand in a table: "
     "%1({%2 = …})"},

    /* operators */
    {NULL, "! =|==", "\"not equal\" is ~= in Lua; A:ne(B) gives a mask"},
    {NULL, "== =", "equal is =="},
    {NULL, "OPERAND < ~>", "\"not equal\" is ~= in Lua; A:ne(B) gives a mask"},
    {NULL, "& ~&",
     "both are wanted with the word and; masks are joined with "
     "one &"},
    {NULL, "| ~|",
     "one of both is wanted with the word or; masks are joined "
     "with one |"},
    {NULL, "* ~*", "a power is A ^ n, element by element A:pow(p)"},
    {NULL, ". *|/|^", "element by element is A % B, A / B and A:pow(p)"},
    {NULL, ". +|-", "sums and differences are element by element: A + B"},
    {SAYS(STRING), "OPERAND . ~PRIME", "the transpose of %1 is %1.T"},
    {SAYS(STRING), "OPERAND ~PRIME", "the transpose of %1 is %1.T"},
    {NULL, "\\",
     "A \\ b, the x with A * x = b, is solve(A, b); the nearest lstsq(A, b)"},
    {NULL, "OPERAND ? ...",
     "a choice is condition and a or b, or if … then "
     "… else … end"},
    {AT(NEAR, "if"), "VALUE if VALUE", "a choice is condition and a or b"},
    {AT(THEN, "else"), "VALUE if VALUE", "a choice is condition and a or b"},
    {NULL, "OPERAND ! $", "%1! is gamma(%1 + 1)"},
    {NULL, "! VALUE", "\"not\" is a word: not %1; of a mask ~%1"},
    {NULL, "^ | NAME |", "the absolute value is abs(%1)"},

    /* lists and tables */
    {NULL, "[ ... for NAME in",
     "a vector by a formula is fromfn(n, "
     "function(i) return i ^ 2 end)"},
    {NULL, "zeros|ones|rand|randn|full|eye ( [ ... ]",
     "sizes are given one by one: zeros(%1)"},
    {AT(BRACKET, ","), "zeros|ones|rand|randn|full|eye ( ( ... )",
     "sizes are given one by one: zeros(%1)"},
    {AT(SYMBOL, "["), "",
     "a matrix is mat{{1, 2}, {3, 4}}, a vector "
     "vec{1, 2, 3}"},
    {AT(SYMBOL, "{"), "^ { ... } [|.|:",
     "a table that is used at once "
     "stands in brackets: ({%1})[1]; a vector is vec{%1}"},
    {SAYS(EOF), "^ { ... } [|.|:",
     "a table that is used at once "
     "stands in brackets: ({%1})[1]; a vector is vec{%1}"},

    /* blocks */
    {NULL, "elif|elsif VALUE", "the word is elseif: elseif %1 … then"},
    {SAYS(END), "else if",
     "elseif is one word; else if opens a block "
     "that needs an end of its own"},
    {SAYS(NEAR), "^ endif|endfor|endwhile|endfunction|end_for|end_if",
     "every block ends with the word end"},
    {NULL, "^ end if|for|while|function $",
     "every block ends with the word end"},
    {NULL, "^ if ... SLICE", "a condition is if %1 then … end"},
    {NULL, "^ while ... SLICE", "a loop is while %1 do … end"},
    {NULL, "^ for NAME in ... SLICE",
     "a loop is for i = 1, 10 do … end, over "
     "a list for i, %1 in ipairs(list) do"},
    {NULL, "^ switch NAME|NUM",
     "cases are if x == 1 then … elseif x == 2 "
     "then … else … end"},
    {NULL, "^ try NAME",
     "pcall(f, …) says whether f ended, and with which "
     "error"},
    {NULL, "^ throw|raise NAME",
     "an error is raised by error(\"what is "
     "wrong\")"},
    {NULL, "^ assert NAME ...", "a call has brackets: assert(%1 %2)"},
    {NULL, "^ with NAME",
     "a file that closes itself is local f <close> = "
     "io.open(name)"},
    {NULL, "^ class|struct NAME", "objects are tables: %1 = {}"},
    {NULL, "^ import|from|using NAME",
     "functions need no import: zeros(3); modules come by require \"name\""},
    {NULL, "^ print|disp|puts|echo|say NAME|NUM ...",
     "a call has brackets: "
     "print(%1 %2)"},
    {SAYS(THEN), "", "a condition is if x > 1 then … end"},
    {SAYS(DO), "",
     "a loop is while x > 1 do … end, or for i = 1, 10 "
     "do … end"},

    /* what runs, and ends in an error */
    {ANY, "FORMAT ~STR",
     "values are put into a text by "
     "string.format(\"x is %g\", x)"},
    {SAYS(TABLE_COMPUTED), "",
     "a list to compute with is a vector, vec{1, 2, 3}, or mat{{1, 2}, {3, "
     "4}}"},
    {SAYS(TABLE_GIVEN), "",
     "vec{1, 2, 3} is a vector, mat{{1, 2}, {3, 4}} a matrix"},
    {SAYS(TABLE_FOR_VECTOR), "", "vec{1, 2, 3} is a vector"},
    {SAYS(TEXT_MOD), "",
     "values are put into a text by "
     "string.format(\"x is %g\", x)"},
    {SAYS(NIL_COMPUTED), "print STR %",
     "values are put into a text by print(string.format(\"x is %g\", x))"},
    {SAYS(TEXT_ADD), "", "texts are joined by \"a\" .. \"b\""},
    {SAYS(ADD_TEXT), "", "texts are joined by \"a\" .. \"b\""},
    {SAYS(FOR_NUMBER), "", "a loop is for i = 1, n do"},
    {SAYS(FOR_TABLE), "",
     "a loop over a list is for i, x "
     "in ipairs(list) do"},

    /* what runs, and does something else */
    {NOTE, "^ NAME < ~- VALUE $",
     "%1 <- %2 compares %1 with -%2; an "
     "assignment is %1 = %2"},
    {NOTE, "^ NAME ~--", "-- begins a comment: write %1 = %1 - 1"},
    {NOTE, "if|while|elseif|and|or|not|==|~= TRUTH",
     "%1 is nil: the words are true, false and nil"},
    {NOTE, "OPERAND . shape [ 0 ]",
     "indices begin with 1: %1.shape[1] is "
     "the number of rows"},
};

/* --- a line's words ------------------------------------------------------- */

enum { MOST_WORDS = 200, MOST_SPANS = 9, LONGEST_SPAN = 40 };

typedef struct item {
    lumat_token_kind kind;
    const char *start, *end;
    int is_joined; /* no blank before it */
    int is_open;   /* a string that is not closed */
} item;

typedef struct items {
    lua_State *L;
    item list[MOST_WORDS];
    int count;
    struct {
        const char *start, *end;
    } span[MOST_SPANS]; /* what the pattern's parts were */
    int spans;
} items;

/* Comments are none, but for the one that x-- ends with. */
static int is_word(const line *l, const lumat_token *t)
{
    if (t->kind != LUMAT_COMMENT)
        return t->kind != LUMAT_BLANK;
    return t->end - t->start == 2 && l->start + t->end == l->end;
}

static void read_words(const line *l, items *out)
{
    lumat_token t = {0};
    size_t before = LUMAT_NOWHERE;
    out->count = 0;
    while (out->count < MOST_WORDS &&
           lumat_next_token(l->start, (size_t)(l->end - l->start), &t)) {
        if (!is_word(l, &t))
            continue;
        out->list[out->count++] =
            (item){t.kind, l->start + t.start, l->start + t.end,
                   t.start == before, t.open != 0};
        before = t.end;
    }
}

static int word_is(const item *w, const char *text, size_t length)
{
    return (size_t)(w->end - w->start) == length &&
           memcmp(w->start, text, length) == 0;
}

static int is_sign(const item *w, const char *signs)
{
    return w->end - w->start == 1 && *w->start && strchr(signs, *w->start);
}

static int contains(const item *w, const char *text)
{
    size_t n = strlen(text);
    for (const char *p = w->start; p + n <= w->end; p++)
        if (memcmp(p, text, n) == 0)
            return 1;
    return 0;
}

/* --- parts of a pattern --------------------------------------------------- */

/* LUA_TFUNCTION, LUA_TUSERDATA and so on: what the name holds. */
static int type_of_name(lua_State *L, const item *w)
{
    lumat_push_variable(L, w->start, (size_t)(w->end - w->start));
    int type = lua_type(L, -1);
    lua_pop(L, 1);
    return type;
}

static int ends_operand(const item *w)
{
    return w->kind == LUMAT_NAME || w->kind == LUMAT_NUMBER ||
           w->kind == LUMAT_STRING || is_sign(w, ")]}");
}

static int begins_value(const item *w)
{
    static const char words[] = "not nil true false function";
    return w->kind == LUMAT_NAME || w->kind == LUMAT_NUMBER ||
           w->kind == LUMAT_STRING || is_sign(w, "({-#~") ||
           (w->kind == LUMAT_KEYWORD &&
            lumat_is_listed(w->start, (size_t)(w->end - w->start), words));
}

/* A colon without a method's name and its arguments behind it. */
static int is_slice(const items *s, int at)
{
    const item *name = &s->list[at + 1];
    if (!is_sign(&s->list[at], ":"))
        return 0;
    return at + 2 >= s->count || name->kind != LUMAT_NAME ||
           !(name[1].kind == LUMAT_STRING || is_sign(&name[1], "({")) ||
           (at > 0 && name[-2].kind == LUMAT_NUMBER);
}

/* The quotes before it were primes as well. */
static int is_prime(const items *s, int at)
{
    if (!s->list[at].is_open || *s->list[at].start != '\'')
        return 0;
    for (int i = 0; i < at; i++)
        if (*s->list[i].start == '\'' &&
            !(i > 0 && s->list[i].is_joined && ends_operand(&s->list[i - 1])))
            return 0;
    return 1;
}

static int is_number(const item *w, const char *part)
{
    char last = w->end[-1];
    if (w->kind != LUMAT_NUMBER)
        return 0;
    if (strcmp(part, "IMAG") == 0)
        return (last == 'i' || last == 'j') && !contains(w, "x");
    if (strcmp(part, "UNDERSCORED") == 0)
        return contains(w, "_");
    if (strcmp(part, "BINARY") == 0)
        return w->end - w->start > 2 && *w->start == '0' &&
               (w->start[1] == 'b' || w->start[1] == 'o');
    return contains(w, "..");
}

/* One of the words of a|b, or | itself. */
static int is_listed_word(const item *w, const char *part)
{
    if (strcmp(part, "|") == 0)
        return word_is(w, "|", 1);
    for (const char *p = part; *p;) {
        size_t n = strcspn(p, "|");
        if (word_is(w, p, n))
            return 1;
        p += n + (p[n] == '|');
    }
    return 0;
}

/* Is the word what a part in capitals names? */
static int is_of_class(const items *s, int at, const char *part)
{
    const item *w = &s->list[at];
    int is_name = w->kind == LUMAT_NAME;
    if (strcmp(part, "NAME") == 0)
        return is_name;
    if (strcmp(part, "NUM") == 0)
        return w->kind == LUMAT_NUMBER;
    if (strcmp(part, "NAME|NUM") == 0)
        return is_name || w->kind == LUMAT_NUMBER;
    if (strcmp(part, "STR") == 0)
        return w->kind == LUMAT_STRING;
    if (strcmp(part, "OPERAND") == 0)
        return ends_operand(w);
    if (strcmp(part, "VALUE") == 0)
        return begins_value(w);
    if (strcmp(part, "FUNC") == 0)
        return is_name && type_of_name(s->L, w) == LUA_TFUNCTION;
    if (strcmp(part, "HELD") == 0)
        return is_name && type_of_name(s->L, w) == LUA_TUSERDATA;
    if (strcmp(part, "TRUTH") == 0)
        return is_listed_word(w, "True|False|TRUE|FALSE|None|null|NULL") &&
               type_of_name(s->L, w) == LUA_TNIL;
    if (strcmp(part, "FORMAT") == 0)
        return word_is(w, "f", 1) && type_of_name(s->L, w) == LUA_TNIL;
    if (strcmp(part, "OP") == 0)
        return is_sign(w, "+-*/^%|&") || word_is(w, "//", 2) ||
               word_is(w, "..", 2) || word_is(w, "<<", 2) ||
               word_is(w, ">>", 2);
    if (strcmp(part, "SLICE") == 0)
        return is_slice(s, at);
    if (strcmp(part, "PRIME") == 0)
        return is_prime(s, at);
    return is_number(w, part);
}

/* --- matching ------------------------------------------------------------- */

/* Past a word, or a pair of brackets with what is in it; at where words that
 * go together end. */
static int skip_part(const items *s, int at)
{
    static const char ends[] = "do then end else elseif until";
    const item *w = &s->list[at];
    int depth = 0;
    if (is_sign(w, ")]};") ||
        (w->kind == LUMAT_KEYWORD &&
         lumat_is_listed(w->start, (size_t)(w->end - w->start), ends)))
        return at;
    do {
        depth += is_sign(&s->list[at], "([{") != 0;
        depth -= is_sign(&s->list[at], ")]}") != 0;
        at++;
    } while (depth > 0 && at < s->count);
    return at;
}

static int match(items *s, const char *pattern, int at);

/* As few words as let the rest match; at a pattern's end all there are. */
static int match_words(items *s, const char *rest, int at)
{
    int mine = s->spans++, next;
    for (int end = at;; end = next) {
        const char *start = at > 0 ? s->list[at - 1].end : s->list[0].start;
        s->span[mine].start = end > at ? s->list[at].start : start;
        s->span[mine].end = end > at ? s->list[end - 1].end : start;
        s->spans = mine + 1;
        next = end < s->count ? skip_part(s, end) : end;
        if ((*rest || next == end) && match(s, rest, end))
            return 1;
        if (next == end)
            return 0;
    }
}

static int match_word(items *s, const char *part, int at)
{
    if (at >= s->count)
        return 0;
    if (*part == '~') {
        if (!s->list[at].is_joined)
            return 0;
        part++;
    }
    if (*part < 'A' || *part > 'Z')
        return is_listed_word(&s->list[at], part);
    if (!is_of_class(s, at, part))
        return 0;
    if (strcmp(part, "SLICE") != 0 && strcmp(part, "PRIME") != 0) {
        s->span[s->spans].start = s->list[at].start;
        s->span[s->spans++].end = s->list[at].end;
    }
    return 1;
}

/* Does the pattern hold for the words from there on? */
static int match(items *s, const char *pattern, int at)
{
    char part[96];
    size_t n = strcspn(pattern, " ");
    const char *rest = pattern + n + strspn(pattern + n, " ");
    if (n == 0 || n >= sizeof part || s->spans >= MOST_SPANS)
        return n == 0;
    memcpy(part, pattern, n);
    part[n] = '\0';
    if (strcmp(part, "...") == 0)
        return match_words(s, rest, at);
    if (strcmp(part, "^") == 0 && *rest)
        return (at == 0 || is_sign(&s->list[at - 1], ";")) &&
               match(s, rest, at);
    if (strcmp(part, "$") == 0)
        return at == s->count || is_sign(&s->list[at], ";");
    return match_word(s, part, at) && match(s, rest, at + 1);
}

static int holds(items *s, const char *pattern)
{
    for (int at = 0; at < s->count || at == 0; at++) {
        s->spans = 0;
        if (match(s, pattern, at))
            return 1;
    }
    return 0;
}

/* --- the advice ----------------------------------------------------------- */

static void add_span(const items *s, luaL_Buffer *b, int i)
{
    size_t n = i < s->spans ? (size_t)(s->span[i].end - s->span[i].start) : 0;
    if (n == 0 && luaL_bufflen(b) > 0 &&
        luaL_buffaddr(b)[luaL_bufflen(b) - 1] == ' ')
        luaL_buffsub(b, 1);
    if (n > LONGEST_SPAN)
        luaL_addstring(b, "…");
    else if (n == 1 && strchr(")]}", *s->span[i].start))
        luaL_addchar(b, 'A');
    else if (n > 0)
        luaL_addlstring(b, s->span[i].start, n);
}

static const char *push_advice(const items *s, const char *advice)
{
    luaL_Buffer b;
    luaL_buffinit(s->L, &b);
    for (; *advice; advice++) {
        if (*advice == '%' && advice[1] >= '1' && advice[1] <= '9')
            add_span(s, &b, *++advice - '1');
        else
            luaL_addchar(&b, *advice);
    }
    luaL_pushresult(&b);
    return lua_tostring(s->L, -1);
}

/* The message is NULL where there is no error. */
static int is_said(const char *message, const said *s)
{
    if (s->kind == NO_ERROR || !message)
        return s->kind == NO_ERROR && !message;
    if (s->kind == ANY_ERROR)
        return 1;
    return lumat_find_said(message, (lumat_lua_message)s->kind) &&
           (!s->token || lumat_is_near(message, s->token));
}

/* Pushes what to write in place of the line; or returns NULL. `only` leaves
 * out the habits that can be told without a message. */
static const char *push_habit(lua_State *L, const char *message, const line *l,
                              int only)
{
    items s = {.L = L};
    read_words(l, &s);
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
        const habit *h = &habits[i];
        if (h->message ? !is_said(message, h->message) : only)
            continue;
        if (*h->pattern ? holds(&s, h->pattern) : 1)
            return push_advice(&s, h->advice);
    }
    return NULL;
}

/* --- letters that Lua has no use for -------------------------------------- */

/* The first byte of such a letter outside of strings and comments, or NULL. */
static const char *find_foreign(const line *l)
{
    lumat_token token = {0};
    while (lumat_next_token(l->start, (size_t)(l->end - l->start), &token)) {
        const char *p = l->start + token.start;
        if (token.kind == LUMAT_OTHER && (unsigned char)*p >= 0x80)
            return p;
    }
    return NULL;
}

/* The code of the letter at p in UTF-8, and its bytes; 0 when it is none. */
static unsigned decode(const char *p, const char *end, size_t *length)
{
    unsigned char c = (unsigned char)*p;
    size_t n = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    unsigned code = c & (0x7Fu >> n);
    if (c < 0xC2 || c > 0xF4 || (size_t)(end - p) < n)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | ((unsigned char)p[i] & 0x3Fu);
    }
    *length = n;
    return code;
}

/* Blanks and marks that look like nothing. */
static int is_invisible(unsigned code)
{
    return code <= 0xA0 || code == 0xAD || code == 0x3000 || code == 0xFEFF ||
           (code >= 0x2000 && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202F);
}

/* Letters that mean something, and how that is written. */
static const struct {
    unsigned code;
    const char *written;
} letters[] = {{0x201C, "\""},     {0x201D, "\""},        {0x201E, "\""},
               {0x2018, "'"},      {0x2019, "'"},         {0x2212, "-"},
               {0x2013, "-"},      {0x2014, "-"},         {0xD7, "*"},
               {0xB7, "*"},        {0x22C5, "*"},         {0xF7, "/"},
               {0x2260, "~="},     {0x2264, "<="},        {0x2265, ">="},
               {0xB2, "^2"},       {0xB3, "^3"},          {0x221A, "sqrt"},
               {0x3C0, "math.pi"}, {0x221E, "math.huge"}, {0x2211, "sum"},
               {0x220F, "prod"},   {0x2032, ".T"},        {0x1D40, ".T"},
               {0x22A4, ".T"},     {0x2026, "..."},       {0x2208, "in"},
               {0xAC, "not"},      {0x2227, "and"},       {0x2228, "or"},
               {0x2297, "kron"}};

static const char *written(unsigned code)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].code == code)
            return letters[i].written;
    return NULL;
}

/* What came from a web page or a text processor: quotes, blanks, minus signs.
 * Lua names their first byte alone. */
static const char *push_foreign(lua_State *L, const char *message,
                                const line *l)
{
    size_t length = 0;
    const char *p =
        lumat_find_said(message, LUMAT_LUA_FOREIGN) ? find_foreign(l) : NULL;
    unsigned code = p ? decode(p, l->end, &length) : 0;
    char number[24];
    if (!code)
        return NULL;
    snprintf(number, sizeof number, "U+%04X", code);
    lua_pushlstring(L, p, is_invisible(code) ? 0 : length);
    const char *here = written(code);
    return lua_pushfstring(
        L, "%s%s%s can only stand in strings and comments%s%s",
        is_invisible(code) ? "the invisible " : lua_tostring(L, -1),
        is_invisible(code) ? "" : " ", number, here ? ": write " : "",
        here ? here : "");
}

/* The line's first word, and the one behind it where Lua has none: pushes
 * both, or returns 0. */
static int push_two_words(lua_State *L, const char *message, const line *l)
{
    items s = {.L = L};
    read_words(l, &s);
    if (s.count < 2 || s.list[0].kind != LUMAT_NAME ||
        s.list[1].kind != LUMAT_NAME)
        return 0;
    for (int i = 0; i < 2; i++)
        lua_pushlstring(L, s.list[i].start,
                        (size_t)(s.list[i].end - s.list[i].start));
    return lumat_is_near(message, lua_tostring(L, -1));
}

/* "help sum", "save work.lum", "clear x": a command and a word behind it, or
 * what the first word is called here. Pushes ":help sum" in a hint, or returns
 * NULL. */
static const char *push_command(lua_State *L, const char *message,
                                const line *l, int is_first)
{
    if (!push_two_words(L, message, l))
        return NULL;
    const char *word = lua_tostring(L, -2);
    if (is_first && lumat_is_command(word, strlen(word))) {
        lua_pushlstring(L, l->start, (size_t)(l->end - l->start));
        return lua_pushfstring(L, "a command begins with a colon: :%s",
                               lua_tostring(L, -1));
    }
    const char *here = lumat_push_instead(L, word);
    return here ? lua_pushfstring(L, "%s: %s", word, here) : NULL;
}

const char *lumat_push_misread(lua_State *L, const char *text, size_t length)
{
    line l = find_line(text, length, 1);
    return l.end == text + length ? push_habit(L, NULL, &l, 1) : NULL;
}

/* Where Lua stumbles at the end, what it stumbled on stands before it. */
static const char *push_earlier_habit(lua_State *L, const char *message,
                                      const char *text, size_t length)
{
    const char *hint = NULL;
    int lines = 1 + lumat_count_lines(text, text + length);
    if (!lumat_find_said(message, LUMAT_LUA_UNFINISHED) &&
        !lumat_find_said(message, LUMAT_LUA_EOF))
        return NULL;
    for (; lines > 0 && !hint; lines--) {
        line l = find_line(text, length, lines);
        if (l.start < l.end)
            hint = push_habit(L, message, &l, 0);
    }
    return hint;
}

void lumat_explain_syntax(lua_State *L, const char *text, size_t length)
{
    int top = lua_gettop(L);
    const char *message = lua_tostring(L, -1), *hint = NULL;
    if (!message)
        return;
    line l = find_line(text, length, line_number(message));
    if (l.start < l.end)
        hint = push_habit(L, message, &l, 0);
    if (!hint)
        hint = push_foreign(L, message, &l);
    if (!hint)
        hint = push_command(L, message, &l, l.start == text);
    if (!hint)
        hint = push_earlier_habit(L, message, text, length);
    if (hint) {
        lua_pushfstring(L, "%s\n  %s", message, hint);
        lua_replace(L, top);
    }
    lua_settop(L, top);
}

/* --- a property is no function -------------------------------------------- */

/* Pushes what to write in place of A.name(). */
static const char *push_uncalled(lua_State *L, const char *name)
{
    if (strcmp(name, "size") == 0)
        return lua_pushliteral(L, "A.size for the elements, A.shape or #A, "
                                  "without ()");
    return lua_pushfstring(L, "A.%s, without ()", name);
}

/* g:count() of an object whose part count is a matrix. */
static void refuse_called_part(lua_State *L)
{
    lua_Debug call;
    if (!lua_getmetatable(L, 2))
        return;
    lua_pop(L, 1);
    if (lua_getstack(L, 0, &call) && lua_getinfo(L, "n", &call) && call.name &&
        strcmp(call.namewhat, "method") == 0)
        lumat_raise(L,
                    "%s: is no method here, but a matrix: write g.%s, "
                    "without ()",
                    call.name, call.name);
}

void lumat_refuse_called(lua_State *L)
{
    lua_Debug call;
    int indices = lua_gettop(L) - 1;
    if (lua_type(L, 2) == LUA_TNUMBER)
        return; /* how it is called costs more than an element */
    if (lua_type(L, 2) == LUA_TSTRING)
        lumat_raise(L,
                    "index: must be a whole number, not %s; the transpose is "
                    "A.T",
                    lumat_push_brief(L, 2));
    if (lua_type(L, 2) == LUA_TTABLE) {
        refuse_called_part(L);
        lumat_raise(L, "index: A{i, j} is a call: write A[{i, j}], or A(i, j) "
                       "for an element");
    }
    if (!lua_getstack(L, 0, &call) || !lua_getinfo(L, "n", &call) || !call.name)
        return;
    if (strcmp(call.namewhat, "for iterator") == 0)
        lumat_raise(L, "a matrix is no iterator: for i, row in A:eachrow() do "
                       "goes through its rows");
    if (strcmp(call.name, "T") != 0)
        return;
    if (indices == 0 || (indices == 1 && lua_isuserdata(L, 2)))
        lumat_raise(L, "T is no function: write %s", push_uncalled(L, "T"));
}

/* The property that the message says was called, pushed; or NULL. Its value
 * is of the type that is named. */
static const char *push_called(lua_State *L, const char *message)
{
    static const struct {
        lumat_lua_message called;
        const char *names;
    } values[] = {{LUMAT_LUA_CALLED_NUMBER, " rows cols size ndim bytes nnz "},
                  {LUMAT_LUA_CALLED_STRING, " dtype device "},
                  {LUMAT_LUA_CALLED_TABLE, " shape "}};
    const char *name = lumat_behind_said(message, LUMAT_LUA_METHOD);
    name = name ? name : lumat_behind_said(message, LUMAT_LUA_FIELD);
    for (size_t i = 0; name && i < sizeof values / sizeof *values; i++) {
        if (!lumat_find_said(message, values[i].called))
            continue;
        lua_pushlstring(L, name, strcspn(name, "'"));
        lua_pushfstring(L, " %s ", lua_tostring(L, -1));
        if (strstr(values[i].names, lua_tostring(L, -1)))
            return lua_tostring(L, -2);
    }
    return NULL;
}

/* Adds advice, or nothing for NULL, to the message at index, which gets to the
 * top: in a row of its own at the prompt, in a script's one line. */
static void add_advice(lua_State *L, int index, int is_entry,
                       const char *advice)
{
    if (advice) {
        lua_pushfstring(L, is_entry ? "%s\n  %s" : "%s: %s",
                        lua_tostring(L, index), advice);
        lua_replace(L, index);
    }
    lua_settop(L, index);
}

static void explain_called(lua_State *L, int is_entry)
{
    int top = lua_gettop(L);
    const char *message = lua_tostring(L, top);
    const char *name = push_called(L, message);
    if (name)
        name =
            lua_pushfstring(L, "of a matrix write %s", push_uncalled(L, name));
    add_advice(L, top, is_entry, name);
}

/* Lua's own words for what is none of its types, where only it could say
 * more: of what string.gsub was to put in. */
static void explain_type(lua_State *L)
{
    const char *message = lua_tostring(L, -1);
    const char *start = lumat_find_said(message, LUMAT_LUA_USERDATA);
    const char *rest = lumat_behind_said(message, LUMAT_LUA_USERDATA);
    if (!start)
        return;
    lua_pushlstring(L, message, (size_t)(start - message));
    lua_pushfstring(L, "%s(a matrix, or what no string stands for)%s",
                    lua_tostring(L, -1), rest);
    lua_replace(L, -3);
    lua_pop(L, 1);
}

/* What the line shows of another language. */
static void explain_habit(lua_State *L, int is_entry)
{
    int top = lua_gettop(L), number;
    const char *text = is_entry ? lumat_running_entry(&number) : NULL;
    const char *message = lua_tostring(L, top);
    text = text ? text : "";
    line l = find_line(text, strlen(text), line_number(message));
    add_advice(L, top, is_entry, push_habit(L, message, &l, 1));
}

void lumat_explain_error(lua_State *L, int is_entry)
{
    if (lua_type(L, -1) != LUA_TSTRING)
        return;
    explain_habit(L, is_entry);
    lumat_explain_nil(L, is_entry);
    explain_called(L, is_entry);
    explain_type(L);
}
