/* The commands of the prompt: finding them, reading what is behind them by the
 * form in their row, running them; the guess at a misspelt one; their help. */
#include "commands.h"

#include "command_list.h"
#include "lumat.h"
#include "terminal.h"

#include "lauxlib.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Prints the string on top of the stack, with a newline if it lacks one, and
 * pops it. */
static void print_top(lua_State *L)
{
    size_t length;
    const char *text = lua_tolstring(L, -1, &length);
    lumat_write_visible(stdout, text, length, 1);
    if (length == 0 || text[length - 1] != '\n')
        fputc('\n', stdout);
    lua_pop(L, 1);
}

/* --- what is behind a command --------------------------------------------- */

/* A text that is cut into words: quotes keep blanks in one. */
typedef struct words {
    const char *text, *word;
    size_t length; /* of word */
    int is_quoted;
} words;

/* The mark of a form; 0: it has none. */
static char mark_of(const char *form)
{
    repl_part part = {.text = form};
    while (repl_next_part(&part))
        if (part.is == REPL_MARK)
            return *part.text;
    return '\0';
}

/* Goes on to the next word behind what is skipped; 0: there is none. */
static int next_word(words *w, const char *skipped, const char *stops)
{
    char quote[2] = "";
    w->text += strspn(w->text, skipped);
    w->is_quoted = *w->text == '"' || *w->text == '\'';
    if (w->is_quoted)
        quote[0] = *w->text++;
    w->word = w->text;
    w->length = strcspn(w->text, w->is_quoted ? quote : stops);
    w->text += w->length;
    w->text += w->is_quoted && *w->text != '\0';
    return w->is_quoted || w->length > 0;
}

/* How many words a form has at most. */
static int most_words(const char *form)
{
    int count = 0;
    repl_part part = {.text = form};
    while (repl_next_part(&part)) {
        if (part.is == REPL_MORE)
            return INT_MAX;
        count += part.is == REPL_WORD;
    }
    return count;
}

/* Is the word "-s", or meant as such? Sets field s of the table on top when the
 * form has it; else `refused`. */
static int take_option(lua_State *L, const char *form, const words *w,
                       int *refused)
{
    repl_part part = {.text = form};
    int count = 0;
    if (w->is_quoted || *w->word != '-' || w->length < 2)
        return 0;
    while (repl_next_part(&part)) {
        if (part.is != REPL_OPTION)
            continue;
        count++;
        if (w->length == part.length &&
            strncmp(w->word, part.text, part.length) == 0) {
            lua_pushlstring(L, part.text + 1, 1);
            lua_pushboolean(L, 1);
            lua_rawset(L, -3);
            return 1;
        }
    }
    *refused = count > 0;
    return *refused;
}

/* ":who takes [name*] [-s], not '-x'" */
static void complain_of(lua_State *L, const repl_command *c, const words *w)
{
    int is_many = w->word[0] != '-' && *c->form != '\0';
    lua_pushlstring(L, w->word, w->length);
    lua_pushfstring(
        L, ":%s takes %s, not '%s'%s", c->name,
        *c->form != '\0' ? c->form : "nothing", lua_tostring(L, -1),
        is_many ? " as well: quotes go around a name with blanks in it" : "");
    repl_report(L);
    lua_pop(L, 1);
}

static int is_choice(const repl_command *c, const char *word, size_t length)
{
    for (const char *p = c->choices; *p != '\0'; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (n == length && strncmp(p, word, n) == 0)
            return 1;
        p += n;
    }
    return 0;
}

/* ":how lacks its C: write :how C [> file]" */
static void complain_lacking(lua_State *L, const repl_command *c)
{
    repl_part part = {.text = c->form};
    repl_next_part(&part);
    part.length -= part.text[part.length - 1] == ',';
    lua_pushlstring(L, part.text, part.length);
    lua_pushfstring(L, ":%s lacks its %s: write :%s %s", c->name,
                    lua_tostring(L, -1), c->name, c->form);
    repl_report(L);
    lua_pop(L, 1);
}

/* Is ">", or a comma as in a call, in front of the word, which goes on from
 * `from`? */
static int is_marked(const words *w, const char *from)
{
    return strcspn(from, ">,") < (size_t)(w->word - from);
}

/* Pushes the table of the words that the command's form has, and of its
 * options: {"tmp*", s = true}. Or complains of a word that it has not, and
 * returns 0. */
static int push_words(lua_State *L, const repl_command *c, const char *rest)
{
    const char *blanks = " \t", *from = rest, mark = mark_of(c->form);
    const char *stops = mark == '>' ? " \t>," : mark ? " \t=" : blanks;
    int count = 0, most = most_words(c->form), refused = 0;
    words w = {.text = rest};
    lua_newtable(L);
    for (; !refused && next_word(&w, count == 1 ? stops : blanks,
                                 count == 0 ? stops : blanks);
         from = w.text) {
        if (take_option(L, c->form, &w, &refused))
            continue;
        if (c->argument == REPL_CHOICE && count == 0 &&
            !is_choice(c, w.word, w.length)) {
            lua_pushfstring(L, ":%s takes one of: %s", c->name, c->choices);
            repl_report(L);
            return 0;
        }
        refused = count == most ||
                  (mark == '>' && count == 1 && !is_marked(&w, from));
        lua_pushlstring(L, w.word, w.length);
        lua_rawseti(L, -2, ++count);
    }
    if (refused)
        complain_of(L, c, &w);
    else if (*w.text != '\0') /* a mark, and no word in front of it */
        complain_lacking(L, c);
    return !refused && *w.text == '\0';
}

/* Complains when nothing is there and the form has to have something. */
static int is_complete(lua_State *L, const repl_command *c, int is_given)
{
    repl_part part = {.text = c->form};
    if (is_given || !repl_next_part(&part) || part.depth > 0)
        return 1;
    complain_lacking(L, c);
    return 0;
}

/* --- the nearest name ----------------------------------------------------- */

const char *repl_nearest(const char *word, repl_name_at *name_at)
{
    const char *best = NULL, *name;
    size_t length = strlen(word);
    int limit = length <= 3 ? 1 : (int)length / 3 + 1;
    for (int i = 0; (name = name_at(i)) != NULL; i++) {
        int d = lumat_distance(word, length, name, strlen(name));
        if (d <= limit && d < LUMAT_FAR_APART) {
            best = name;
            limit = d - 1;
        }
    }
    return best;
}

/* --- running them --------------------------------------------------------- */

/* By their numbers; NULL: it is the library's. */
static repl_command_fn *const functions[] = {
#define COMMAND(name, form, help, argument, choices, run) run,
#define LIBRARY(name, form, help, argument, choices) NULL,
#define TWIN(name, form, help, argument) NULL,
#include "commands.def"
#undef COMMAND
#undef LIBRARY
#undef TWIN
};

static const char *command_name(int i)
{
    const repl_command *command = repl_command_at(i);
    return command != NULL ? command->name : NULL;
}

/* Pushes ":h may be :help or :history". */
static void push_candidates(lua_State *L, const char *word, size_t length)
{
    int count = 0;
    lua_pushfstring(L, ":%s may be ", word);
    const char *name;
    for (int i = 0; (name = command_name(i)) != NULL; i++) {
        if (strncmp(name, word, length) != 0)
            continue;
        lua_pushfstring(L, "%s:%s", count++ > 0 ? " or " : "", name);
        lua_concat(L, 2);
    }
}

static void complain_unknown(lua_State *L, const char *name, size_t length)
{
    const repl_command *found;
    const char *word = lua_pushlstring(L, name, length);
    const char *near = repl_nearest(word, command_name);
    if (length == 0)
        lua_pushliteral(L, "a command's name belongs behind ':'; see :help");
    else if (repl_count_commands(name, length, &found) > 1)
        push_candidates(L, word, length);
    else if (near != NULL)
        lua_pushfstring(L, "no command :%s; did you mean :%s?", word, near);
    else
        lua_pushfstring(L, "no command :%s; see :help", word);
    repl_report(L);
    lua_pop(L, 1);
}

/* Trailing blanks are no part of an argument. */
static const char *push_rest(lua_State *L, const char *rest)
{
    rest += strspn(rest, " \t");
    size_t length = strlen(rest);
    while (length > 0 && strchr(" \t\r\n", rest[length - 1]) != NULL)
        length--;
    return lua_pushlstring(L, rest, length);
}

/* Evaluates text that a command stands for; `ans` stays. */
static void evaluate(repl_session *session, const char *text)
{
    session->keeps_ans = 1;
    repl_evaluate(session, text);
    session->keeps_ans = 0;
}

/* Calls its function in prompt_commands.lua with the words on top of the stack,
 * or with the rest as text, for the entry that it stands for. */
static void run_of_library(repl_session *session, const repl_command *c,
                           const char *rest)
{
    lua_State *L = session->L;
    lumat_push_required(L, "prompt_commands");
    lua_getfield(L, -1, c->name);
    if (repl_reads_words(c)) {
        lua_pushvalue(L, -3);
        repl_call_command(session, 1);
        return;
    }
    lua_pushstring(L, rest);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK)
        evaluate(session, lua_tostring(L, -1));
    else
        repl_report(L);
}

static void run(repl_session *session, const repl_command *c, const char *rest)
{
    lua_State *L = session->L;
    repl_command_fn *own = functions[c - repl_command_at(0)];
    int is_given = *rest != '\0';
    if (repl_reads_words(c)) {
        if (!push_words(L, c, rest))
            return;
        is_given = lua_rawlen(L, -1) > 0;
    }
    if (!is_complete(L, c, is_given))
        return;
    if (own != NULL)
        own(session, rest);
    else if (c->is_twin)
        evaluate(session,
                 lua_pushfstring(L, "require 'lumat'.%s(%s)", c->name, rest));
    else
        run_of_library(session, c, rest);
}

void repl_run_command(repl_session *session, const char *text)
{
    size_t length = strcspn(text, " \t\r\n");
    const repl_command *command = repl_find_command(text, length);
    int top = lua_gettop(session->L);
    if (command == NULL || length == 0)
        complain_unknown(session->L, text, length);
    else
        run(session, command, push_rest(session->L, text + length));
    lua_settop(session->L, top);
}

/* --- help --------------------------------------------------------------- */

void repl_print_help(repl_session *session, const char *topic)
{
    size_t length = strcspn(topic, "?");
    topic =
        lua_pushlstring(session->L, topic, length > 0 ? length : strlen(topic));
    lumat_push_help(session->L, topic);
    print_top(session->L);
    lua_pop(session->L, 1);
}

void repl_print_search(repl_session *session, const char *word)
{
    if (word[0] == '\0') {
        repl_complain("??word needs a word to look for");
        return;
    }
    lumat_push_search(session->L, word);
    print_top(session->L);
}

void repl_run_help(repl_session *session, const char *rest)
{
    repl_print_help(session, rest[0] != '\0' ? rest : ":");
}
