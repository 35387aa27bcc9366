/* What may stand where the cursor is, by what stands before it. */
#include "complete.h"

#include "commands.h"
#include "entry.h"

#include <stdio.h>
#include <string.h>

/* A line that begins with a command's name, up to point. */
typedef struct command_line {
    const repl_command *command; /* NULL: unknown */
    size_t name, rest;           /* where they begin; rest > point: not yet */
} command_line;

/* Whether the line is a command's, and how far it has come. */
static int read_command(const char *line, size_t point, command_line *read)
{
    const char *start = repl_skip_blanks(line);
    size_t length;
    if (start[0] != ':' || start[1] == ':')
        return 0;
    length = strcspn(start + 1, " \t");
    read->name = (size_t)(start + 1 - line);
    read->rest = (size_t)(repl_skip_blanks(start + 1 + length) - line);
    read->command = repl_find_command(start + 1, length);
    if (point <= read->name + length)
        read->rest = point + 1;
    return point >= read->name;
}

int repl_completes_files(const char *line, size_t point)
{
    command_line read;
    return read_command(line, point, &read) && read.rest <= point &&
           read.command != NULL && read.command->argument == REPL_FILE;
}

/* With a blank behind those that take an argument. */
static void offer_commands(const char *typed, size_t length,
                           lumat_name_fn *each, void *data)
{
    const repl_command *command;
    char name[32];
    for (int i = 0; (command = repl_command_at(i)) != NULL; i++) {
        if (strncmp(command->name, typed, length) != 0)
            continue;
        snprintf(name, sizeof name, "%s%s", command->name,
                 command->argument != REPL_NOTHING ? " " : "");
        each(data, name, command->help);
    }
}

/* Offers the words of a list, such as "on off", that begin as typed. */
static void offer_words(const char *words, const char *typed, size_t length,
                        lumat_name_fn *each, void *data)
{
    while (*words != '\0') {
        char word[32] = "";
        size_t size = strcspn(words, " ");
        if (size < sizeof word && strncmp(words, typed, length) == 0)
            each(data, memcpy(word, words, size), "");
        words += size + (words[size] == ' ');
    }
}

/* Completes what follows a mark as if the line began there. */
static size_t complete_behind(lua_State *L, const char *line, size_t mark,
                              size_t point, lumat_name_fn *each, void *data)
{
    return mark + lumat_complete(L, line + mark, point - mark, each, data);
}

static size_t complete_command(lua_State *L, const char *line, size_t point,
                               const command_line *read, lumat_name_fn *each,
                               void *data)
{
    const repl_command *command = read->command;
    if (read->rest > point) {
        offer_commands(line + read->name, point - read->name, each, data);
        return read->name;
    }
    if (command == NULL || command->argument == REPL_NOTHING)
        return point;
    if (command->argument == REPL_CHOICE) {
        offer_words(command->choices, line + read->rest, point - read->rest,
                    each, data);
        return read->rest;
    }
    return complete_behind(L, line, read->rest, point, each, data);
}

size_t repl_complete(lua_State *L, const char *line, size_t point,
                     lumat_name_fn *each, void *data)
{
    const char *rest;
    command_line read;
    repl_entry_kind kind = repl_entry_kind_of(line, &rest);
    size_t mark = (size_t)(rest - line);
    if (read_command(line, point, &read))
        return complete_command(L, line, point, &read, each, data);
    if ((kind == REPL_HELP || kind == REPL_SEARCH) && mark <= point)
        return complete_behind(L, line, mark, point, each, data);
    return lumat_complete(L, line, point, each, data);
}
