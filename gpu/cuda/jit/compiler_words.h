/* What is said between a program and the compiler that it starts,
 *   lumat-cuda-compile VERSION HASH
 * which is to be of that version of CUDA, with files that jit_hash_files gives
 * that number of, in hexadecimal. Questions go to its standard input until that
 * is closed; each is answered on its standard output. */
#ifndef JIT_COMPILER_WORDS_H
#define JIT_COMPILER_WORDS_H

#include <stdint.h>

/* So many bytes of a kernel's text follow. */
typedef struct jit_question {
    uint64_t bytes;
    uint64_t capability; /* the architecture: 90 for sm_90 */
} jit_question;

/* So many bytes follow: machine code, or why there is none. */
typedef struct jit_answer {
    uint64_t bytes;
    uint64_t is_code;
} jit_answer;

#endif
