/* The table of commands, but for what they do. */
#include "entry.h"

#include <string.h>

static const repl_command commands[] = {
#define COMMAND(name, form, help, argument, choices, run) \
    {#name, form, help, REPL_##argument, choices, 0},
#define LIBRARY(name, form, help, argument, choices) \
    {#name, form, help, REPL_##argument, choices, 0},
#define TWIN(name, form, help, argument) \
    {#name, form, help, REPL_##argument, NULL, 1},
#include "commands.def"
#undef COMMAND
#undef LIBRARY
#undef TWIN
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

const repl_command *repl_command_at(int i)
{
    return i < COMMANDS ? &commands[i] : NULL;
}

int repl_count_commands(const char *name, size_t length,
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
    return repl_count_commands(name, length, &found) == 1 ? found : NULL;
}

int repl_reads_words(const repl_command *command)
{
    return command->argument < REPL_TEXT;
}

int repl_next_part(repl_part *part)
{
    const char *p = part->text + part->length;
    for (; *p != '\0' && strchr(" []", *p) != NULL; p++)
        part->depth += (*p == '[') - (*p == ']');
    part->text = p;
    part->length = strcspn(p, " []");
    part->is = *p == '-' && part->length == 2          ? REPL_OPTION
               : part->length == 1 && strchr(">=", *p) ? REPL_MARK
               : strncmp(p, "…", part->length) == 0    ? REPL_MORE
                                                       : REPL_WORD;
    return part->length > 0;
}

const lumat_row repl_command_rows[] = {
#define GROUP(title) {title, NULL, NULL},
#define COMMAND(name, form, help, argument, choices, run) {#name, form, help},
#define LIBRARY(name, form, help, argument, choices) {#name, form, help},
#define TWIN(name, form, help, argument) {#name, form, help},
#include "commands.def"
#undef COMMAND
#undef LIBRARY
#undef TWIN
    {NULL, NULL, NULL}};
