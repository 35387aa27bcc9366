/* When programs become kernels: not before it is worth it, at once where that
 * is asked for, from the folder where they are kept; and leaving while one is
 * compiled waits for nothing. What needs NVRTC is skipped without it. */
#include "jit_testing.h"

#include <sys/wait.h>
#include <time.h>

enum { MOST_KERNELS = 512 };

static char home[64];
static int unloaded;

static void unload(void *loaded, int device_number)
{
    assert_int_equal(device_number, 3);
    assert_ptr_equal(loaded, &unloaded);
    unloaded++;
}

/* A program of its own for each number. */
static jit_form form(int number)
{
    jit_form f = {.compute = GPU_F32, .inputs = 1, .is_row = 1, .length = 12};
    for (int n = 0; n < f.length; n++) {
        f.code[n].op = number >> n & 1 ? GPU_OP_abs : GPU_OP_neg;
        f.code[n].x = (uint8_t)n;
    }
    return f;
}

static const void *image_of(int number, double seconds, int waits)
{
    jit_form f = form(number);
    jit_kernel *k = jit_find(&f, CAPABILITY);
    assert_non_null(k);
    return jit_image(k, seconds, waits);
}

static void rest(int milliseconds)
{
    struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* In a process of its own: a compilation is begun, and the program left. */
static int leave_at(int milliseconds)
{
    jit_start(compiler(), VERSION, unload);
    image_of(1, 1, 0);
    image_of(1, 1, 0);
    while (milliseconds > 0 && !image_of(1, 1, 0)) {
        rest(1);
        milliseconds--;
    }
    return 7;
}

static void leaving_ends_it(void **state)
{
    char text[16];
    (void)state;
    if (!has_nvrtc())
        LEAVE_OUT("NVRTC");
    for (int ms = 0; ms <= 300; ms += 30) {
        snprintf(text, sizeof text, "%d", ms);
        double started = now();
        pid_t child = fork();
        if (child == 0) {
            setenv("HOME", "/dev/null", 1); /* no folder: it is compiled */
            execl("/proc/self/exe", "test_kernels", text, (char *)NULL);
            _exit(1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
            fail_msg("left after %d ms: status %x", ms, (unsigned)status);
        if (now() - started > 1 + ms * 1e-3)
            fail_msg("left after %d ms: it took %g s", ms, now() - started);
    }
}

/* --- in this process -------------------------------------------------------
 */

static void seen_once_is_not_worth_it(void **state)
{
    (void)state;
    assert_null(image_of(2, 1e-6, 0));
    rest(50);
    assert_null(image_of(2, 1e-6, 0));
}

/* What would have been saved adds up. */
static void seen_often_is(void **state)
{
    int runs = 0;
    (void)state;
    if (!has_nvrtc())
        LEAVE_OUT("NVRTC");
    for (; runs < 2000 && !image_of(3, 1e-3, 0); runs++)
        rest(1);
    assert_true(runs >= 20);
    assert_true(runs < 2000);
    assert_ptr_equal(image_of(3, 0, 0), image_of(3, 0, 0));
}

static void it_is_done_at_once_if_asked(void **state)
{
    (void)state;
    if (!has_nvrtc())
        LEAVE_OUT("NVRTC");
    const char *image = image_of(4, 0, 1);
    assert_non_null(image);
    assert_memory_equal(image, "\177ELF", 4);
}

/* What was compiled before, by another process say, is found sooner. */
static void what_is_in_the_folder_is_found(void **state)
{
    static const char code[] = "kept";
    jit_form f = form(5);
    const char *image = NULL;
    (void)state;
    jit_keep(&f, CAPABILITY, VERSION, code, sizeof code, JIT_MOST_KEPT);
    for (int n = 0; n < 500 && !image; n++) {
        image = image_of(5, n == 0 ? 2e-3 : 0, 0);
        rest(1);
    }
    assert_non_null(image);
    assert_string_equal(image, code);
}

static void what_cannot_be_loaded_is_forsaken(void **state)
{
    jit_form f = form(6);
    (void)state;
    jit_keep(&f, CAPABILITY, VERSION, "bad", 4, JIT_MOST_KEPT);
    assert_non_null(image_of(6, 0, 1));
    jit_forsake(jit_find(&f, CAPABILITY));
    assert_null(image_of(6, 1, 1));
}

/* There are only so many; the one that goes is unloaded first. */
static void there_are_not_too_many(void **state)
{
    jit_form f = form(7);
    (void)state;
    jit_keep(&f, CAPABILITY, VERSION, "used", 5, JIT_MOST_KEPT);
    assert_non_null(image_of(7, 0, 1));
    *jit_loaded(jit_find(&f, CAPABILITY), 3) = &unloaded;
    for (int n = 0; n < MOST_KERNELS; n++)
        image_of(1000 + n, 0, 0);
    assert_int_equal(unloaded, 1);
    assert_null(*jit_loaded(jit_find(&f, CAPABILITY), 3));
}

static int start(void **state)
{
    (void)state;
    strcpy(home, "/tmp/lumat-kernels-XXXXXX");
    if (!mkdtemp(home))
        return -1;
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", home, 1);
    jit_start(compiler(), VERSION, unload);
    return 0;
}

static int end(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", home);
    return system(command);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seen_once_is_not_worth_it),
        cmocka_unit_test(what_is_in_the_folder_is_found),
        cmocka_unit_test(what_cannot_be_loaded_is_forsaken),
        cmocka_unit_test(it_is_done_at_once_if_asked),
        cmocka_unit_test(seen_often_is),
        cmocka_unit_test(there_are_not_too_many),
        cmocka_unit_test(leaving_ends_it),
    };
    if (argc > 1)
        return leave_at(atoi(argv[1]));
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, start, end);
}
