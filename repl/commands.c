/* The commands of the prompt. The table at the end is the one place to add
 * one: help, completion and the guess at misspelt names come from it. */
#include "commands.h"

#include "echo.h"
#include "guess.h"
#include "line.h"
#include "report.h"
#include "script.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 64, HISTORY_SHOWN = 20 };

/* Prints the string on top of the stack, with a newline if it lacks one, and
 * pops it. */
static void print_top(lua_State *L)
{
    size_t length;
    const char *text = lua_tolstring(L, -1, &length);
    fwrite(text, 1, length, stdout);
    if (length == 0 || text[length - 1] != '\n')
        fputc('\n', stdout);
    lua_pop(L, 1);
}

static void print_or_complain(lua_State *L, int ok)
{
    if (ok)
        print_top(L);
    else
        repl_report(L);
}

/* --- help --------------------------------------------------------------- */

static void print_command(const repl_command *command)
{
    char form[32];
    snprintf(form, sizeof form, ":%s %s", command->name, command->form);
    printf("  %-18s %s\n", form, command->help);
}

static void print_commands(void)
{
    const repl_command *command;
    puts("  ?name              help on a name; ? alone: the first things");
    puts("  ??word             names whose help has the word");
    for (int i = 0; (command = repl_command_at(i)) != NULL; i++)
        print_command(command);
    puts("  A command's name may be cut short while it is the only such one.");
}

static void help_on_command(const char *name)
{
    const repl_command *command = repl_find_command(name, strlen(name));
    if (command != NULL)
        print_command(command);
    else
        print_commands();
}

void repl_print_help(repl_session *session, const char *topic)
{
    if (topic[0] == ':') {
        help_on_command(topic + 1);
        return;
    }
    lumat_push_help(session->L, topic[0] != '\0' ? topic : NULL);
    print_top(session->L);
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

static void run_help(repl_session *session, const char *rest)
{
    if (rest[0] == '\0')
        print_commands();
    else
        repl_print_help(session, rest);
}

/* --- what is there ------------------------------------------------------ */

static void run_who(repl_session *session, const char *rest)
{
    (void)rest;
    lumat_push_who(session->L);
    print_top(session->L);
}

static void run_device(repl_session *session, const char *rest)
{
    const char *name = rest[0] != '\0' ? rest : NULL;
    print_or_complain(session->L, lumat_push_device(session->L, name));
}

static void run_trace(repl_session *session, const char *rest)
{
    if (strcmp(rest, "on") == 0 || strcmp(rest, "off") == 0)
        lumat_set_trace(session->L, rest[1] == 'n');
    else
        repl_complain(":trace takes on or off");
}

/* --- history ------------------------------------------------------------ */

/* The lines of an entry below each other. */
static void print_entry(int number, const char *entry)
{
    printf("%5d  ", number);
    for (; *entry != '\0'; entry++) {
        putchar(*entry);
        if (*entry == '\n')
            printf("       ");
    }
    putchar('\n');
}

/* Where the last `most` entries begin. */
static int first_of_last(int most)
{
    int count = 0;
    while (repl_remembered(count) != NULL)
        count++;
    return count > most ? count - most : 0;
}

/* A number: that many of the last entries; other text: those that have it. */
static void run_history(repl_session *session, const char *rest)
{
    char *end;
    long most = strtol(rest, &end, 10);
    int is_number = end != rest && *end == '\0';
    int first = 0;
    const char *entry;
    (void)session;
    if (is_number || rest[0] == '\0')
        first = first_of_last(is_number ? (int)most : HISTORY_SHOWN);
    for (int i = first; (entry = repl_remembered(i)) != NULL; i++)
        if (is_number || strstr(entry, rest) != NULL)
            print_entry(i + 1, entry);
}

/* --- running ------------------------------------------------------------ */

/* Cuts the text into words, in place; quotes keep blanks inside one. */
static int cut_words(char *text, char **words)
{
    int count = 0;
    while (count < MOST_WORDS) {
        const char *stop = " \t";
        text += strspn(text, " \t");
        if (*text == '\0')
            break;
        if (*text == '"' || *text == '\'')
            stop = *text++ == '"' ? "\"" : "'";
        words[count++] = text;
        text += strcspn(text, stop);
        if (*text != '\0')
            *text++ = '\0';
    }
    return count;
}

static void run_words(lua_State *L, char **words, int count)
{
    int base = lua_gettop(L), status = repl_load_file(L, words[0]);
    if (status != LUA_OK) {
        repl_load_failed(L, status);
        return;
    }
    repl_set_arg(L, words, count, 0);
    for (int i = 1; i < count; i++)
        lua_pushstring(L, words[i]);
    repl_run(L, count - 1);
    lua_settop(L, base);
}

static void run_file(repl_session *session, const char *rest)
{
    char *words[MOST_WORDS], *text;
    int count;
    text = lua_newuserdata(session->L, strlen(rest) + 1);
    count = cut_words(strcpy(text, rest), words);
    if (!lua_checkstack(session->L, MOST_WORDS + LUA_MINSTACK))
        repl_complain(":run: not enough memory");
    else if (count == 0)
        repl_complain(":run needs a file");
    else
        run_words(session->L, words, count);
    lua_pop(session->L, 1);
}

static void run_time(repl_session *session, const char *rest)
{
    static const struct unit {
        double size;
        const char *name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
    const struct unit *unit = units;
    if (rest[0] == '\0') {
        repl_complain(":time needs an expression");
        return;
    }
    if (!repl_evaluate(session, rest))
        return;
    while (unit < units + 2 && session->seconds < unit->size)
        unit++;
    printf("  %.3g %s\n", session->seconds / unit->size, unit->name);
}

/* --- the ladder --------------------------------------------------------- */

/* Evaluates the library's function of that name, whatever the user's own
 * variable of the name may be, and shows what it gives. */
static void show_call(repl_session *session, const char *function,
                      const char *arguments)
{
    const char *text = lua_pushfstring(session->L, "require 'lumat'.%s(%s)",
                                       function, arguments);
    repl_evaluate(session, text);
    lua_pop(session->L, 1);
}

/* Behind the name, number or bracketed text that starts at p. */
static const char *skip_operand(const char *p)
{
    int depth = 0;
    for (; *p != '\0'; p++) {
        if (*p == '"' || *p == '\'') {
            const char *end = strchr(p + 1, *p);
            p = end != NULL ? end : p;
        } else if (strchr("([{", *p) != NULL)
            depth++;
        else if (strchr(")]}", *p) != NULL)
            depth--;
        else if (depth == 0 && !isalnum((unsigned char)*p) &&
                 strchr("_.: \t", *p) == NULL)
            break;
    }
    return p;
}

/* Where the '*' of "A * B" or "A * B, {options}" is, or NULL in any other
 * text: of an expression with more in it, what are the operands? */
static const char *find_product(const char *text)
{
    const char *star = skip_operand(text), *end;
    if (*star != '*')
        return NULL;
    end = skip_operand(star + 1);
    if (*end == ',')
        end += 1 + strspn(end + 1, " \t");
    return *end == '\0' || *end == '{' ? star : NULL;
}

/* Shows what the function gives for two operands, however they are written. */
static void show_product(repl_session *session, const char *function,
                         const char *text)
{
    const char *star = find_product(text);
    if (star == NULL) {
        show_call(session, function, text);
        return;
    }
    lua_pushlstring(session->L, text, (size_t)(star - text));
    text = lua_pushfstring(session->L, "%s,%s", lua_tostring(session->L, -1),
                           star + 1);
    show_call(session, function, text);
    lua_pop(session->L, 2);
}

/* A word is a kernel or a device, unless a variable is called so. */
static void show_named(repl_session *session, const char *word)
{
    const char *form = strchr(word, '-') != NULL ? "'%s'" : "%s or '%s'";
    const char *text = lua_pushfstring(session->L, form, word, word);
    show_call(session, "kernels", text);
    lua_pop(session->L, 1);
}

static int is_word(const char *text)
{
    if (!isalpha((unsigned char)*text))
        return 0;
    while (isalnum((unsigned char)*text) || *text == '-' || *text == '_')
        text++;
    return *text == '\0';
}

static void run_kernel(repl_session *session, const char *rest)
{
    if (is_word(rest))
        show_named(session, rest);
    else
        show_product(session, "kernels", rest);
}

static void run_race(repl_session *session, const char *rest)
{
    if (find_product(rest) == NULL && strchr(rest, ',') == NULL)
        repl_complain(":race needs two matrices or vectors: :race A, B");
    else
        show_product(session, "race", rest);
}

static void run_quit(repl_session *session, const char *rest)
{
    (void)rest;
    session->quit = 1;
}

static const repl_command commands[] = {
    {"help", "[name]", "this, or help on a name", REPL_EXPRESSION, NULL,
     run_help},
    {"who", "", "your variables", REPL_NOTHING, NULL, run_who},
    {"device", "[name]", "the device; with a name, use that one", REPL_CHOICE,
     "cpu cuda", run_device},
    {"trace", "on|off", "print what each operation did and took", REPL_CHOICE,
     "on off", run_trace},
    {"time", "expr", "run it and print how long it took", REPL_EXPRESSION, NULL,
     run_time},
    {"kernel", "[A, B]", "the kernels; with operands, which one they get",
     REPL_EXPRESSION, NULL, run_kernel},
    {"race", "A, B", "every kernel on A * B: time, rate, error",
     REPL_EXPRESSION, NULL, run_race},
    {"run", "file [args]", "run a script in this session", REPL_FILE, NULL,
     run_file},
    {"history", "[n|text]", "the last entries, or those with the text",
     REPL_NOTHING, NULL, run_history},
    {"quit", "", "leave (so does Ctrl-D)", REPL_NOTHING, NULL, run_quit},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

const repl_command *repl_command_at(int i)
{
    return i < COMMANDS ? &commands[i] : NULL;
}

static const char *command_name(int i)
{
    return i < COMMANDS ? commands[i].name : NULL;
}

/* How many commands begin so; found gets the last of them, or the exact one. */
static int count_matches(const char *name, size_t length,
                         const repl_command **found)
{
    int count = 0;
    for (int i = 0; i < COMMANDS; i++) {
        if (strncmp(commands[i].name, name, length) != 0)
            continue;
        *found = &commands[i];
        if (commands[i].name[length] == '\0')
            return 1;
        count++;
    }
    return count;
}

const repl_command *repl_find_command(const char *name, size_t length)
{
    const repl_command *found = NULL;
    return count_matches(name, length, &found) == 1 ? found : NULL;
}

static void complain_unknown(lua_State *L, const char *name, size_t length)
{
    const repl_command *found;
    const char *word = lua_pushlstring(L, name, length);
    const char *near = repl_nearest(word, command_name);
    if (length == 0)
        lua_pushliteral(L, "a command's name belongs behind ':'; see :help");
    else if (count_matches(name, length, &found) > 1)
        lua_pushfstring(L, ":%s may be several commands; see :help", word);
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
    size_t length = strlen(rest);
    rest += strspn(rest, " \t");
    length = strlen(rest);
    while (length > 0 && strchr(" \t\r\n", rest[length - 1]) != NULL)
        length--;
    return lua_pushlstring(L, rest, length);
}

void repl_run_command(repl_session *session, const char *text)
{
    size_t length = strcspn(text, " \t\r\n");
    const repl_command *command = repl_find_command(text, length);
    if (command == NULL || length == 0) {
        complain_unknown(session->L, text, length);
        return;
    }
    command->run(session, push_rest(session->L, text + length));
    lua_pop(session->L, 1);
}
