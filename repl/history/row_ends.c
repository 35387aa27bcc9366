#include "row_ends.h"

#include <stdio.h>
#include <readline/readline.h>

int repl_row_start(int place)
{
    while (place > 0 && rl_line_buffer[place - 1] != '\n')
        place--;
    return place;
}

int repl_row_end(int place)
{
    while (place < rl_end && rl_line_buffer[place] != '\n')
        place++;
    return place;
}
