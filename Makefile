# lumat: a GPU matrix calculator. `make help` lists what can be done here.
#
#   CUDA=0          build without the CUDA backend (chosen when nvcc is missing)
#   SAN=address,undefined   build with sanitizers
#   ARCHS="80 90a"  GPU architectures; the last one's PTX is kept for newer GPUs
#   NVOPT='-O3 --Ofast-compile=max'  GPU code that is soon built, and slow
#   PREFIX DESTDIR  where `make install` puts things
#   BUILD           where everything built goes;  V=1 shows the commands

VERSION  := $(shell sed -n 's/^\#define LUMAT_VERSION "\(.*\)"/\1/p' lua/value/value.h)
PREFIX   ?= /usr/local
BUILD    ?= build
NVCC     ?= $(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA     ?= $(if $(NVCC),1,0)
ARCHS    ?= 80 86 89 90a 100 120
NVOPT    ?= -O3
SAN      ?=

# One goal is built on all cores, unless somebody says on how many: make -j1.
ifeq ($(MAKELEVEL)$(words $(or $(MAKECMDGOALS),all)),01)
MAKEFLAGS += -j$(shell nproc)
endif

V        ?= 0
Q        := $(if $(filter 0,$(V)),@)
say      := @$(if $(filter 0,$(V)),echo,:)
empty    :=
space    := $(empty) $(empty)
comma    := ,
VARIANT  := $(if $(SAN),san-$(subst $(comma),-,$(SAN)),release)$(if $(filter 0,$(CUDA)),-cpu)
OUT      := $(BUILD)/$(VARIANT)
BIN      := $(OUT)/bin
LUMAT    := $(BIN)/lumat
TOOLKIT  := $(patsubst %/bin/nvcc,%,$(NVCC))
CUBLAS   := $(and $(filter 1,$(CUDA)),$(wildcard $(TOOLKIT)/include/cublas_v2.h),$(wildcard $(TOOLKIT)/lib64/libcublas.so),$(wildcard $(TOOLKIT)/lib64/libcusparse.so))
CUSOLVER := $(and $(CUBLAS),$(wildcard $(TOOLKIT)/include/cusolverDn.h),$(wildcard $(TOOLKIT)/lib64/libcusolver.so))
CUFFT    := $(and $(filter 1,$(CUDA)),$(wildcard $(TOOLKIT)/include/cufft.h),$(wildcard $(TOOLKIT)/lib64/libcufft.so))
PLUGINS  := $(if $(filter 1,$(CUDA)),$(BIN)/liblumat-cuda.so $(BIN)/lumat-cuda-compile) $(if $(CUBLAS),$(BIN)/liblumat-cuda-la.so) $(if $(CUSOLVER),$(BIN)/liblumat-cuda-solver.so) $(if $(CUFFT),$(BIN)/liblumat-cuda-fft.so)

# A pool's processes: MPI and ScaLAPACK, linked by lumat-worker alone.
MPICC    := $(shell command -v mpicc)
LUA_INC  := $(firstword $(wildcard /usr/include/lua5.4 /usr/local/include))
LUA_LIB  := $(firstword $(wildcard /usr/lib/*/liblua5.4.a /usr/local/lib/liblua.a))
WARN     := -Wall -Wextra -Wshadow -Wpointer-arith -Wno-unknown-pragmas
CWARN    := $(WARN) -Wstrict-prototypes -Wmissing-prototypes $(if $(SAN),,-Wframe-larger-than=49152)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fPIC -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
CFLAGS   ?= -O2 -g
override CFLAGS += -std=c11 -D_GNU_SOURCE -fvisibility=hidden -MMD -MP $(CWARN) $(SANFLAGS)
CXXFLAGS := -O2 -g -std=c++20 -fno-exceptions -fno-rtti -MMD -MP $(WARN) $(SANFLAGS)
NVFLAGS   = $(NVOPT) -std=c++20 $(addprefix -I,gpu gpu/cuda gpu/cuda/jit $(KERNELS)) -t 2 --compiler-options -fPIC,-fvisibility=hidden \
            -Wno-deprecated-gpu-targets \
            $(foreach a,$(ARCHS),-gencode=arch=compute_$a$(comma)code=sm_$a) \
            $(foreach a,$(lastword $(ARCHS)),$(if $(findstring a,$a),,-gencode=arch=compute_$a$(comma)code=compute_$a))
JPEG     := $(and $(wildcard /usr/include/jpeglib.h /usr/local/include/jpeglib.h),$(firstword $(wildcard /usr/lib/*/libjpeg.a /usr/local/lib/libjpeg.a /usr/lib64/libjpeg.so)))
SCALAPACK := $(firstword $(wildcard /usr/lib/*/libscalapack-openmpi.so /usr/local/lib/libscalapack.so))
WORKER   := $(and $(MPICC),$(SCALAPACK),$(BIN)/lumat-worker)
LIBS     := -lreadline -lncursesw -ltinfo $(LUA_LIB) -l:libz.a $(JPEG) -lsleef -lstdc++ -lpthread -ldl -lm

# --- the rooms: sources of a folder see its own headers and those of the rooms
# named here, nothing else
SEES_gpu            :=
SEES_gpu/runtime    := gpu
SEES_gpu/matrix     := gpu gpu/runtime
SEES_gpu/operations := gpu gpu/runtime gpu/matrix
SEES_gpu/sparse     := gpu gpu/runtime gpu/matrix gpu/operations
SEES_gpu/dry        := gpu gpu/runtime gpu/matrix
SEES_gpu/cpu        := gpu
SEES_gpu/cuda/la := gpu
SEES_gpu/cuda/jit := gpu
SEES_gpu/cuda/compiler := gpu gpu/cuda/jit
VALUE               := gpu lua/parse lua/value
FUNCTIONS           := $(VALUE) lua/functions
PRINT               := $(FUNCTIONS) lua/scope lua/print
MATH                := $(PRINT) lua/diagnose lua/math
SEES_lua/parse      := gpu
SEES_lua/value      := gpu lua/parse
SEES_lua/std        := lua/value gpu
SEES_lua/lualib     := $(VALUE)
SEES_lua/functions  := $(VALUE)
SEES_lua/scope      := $(FUNCTIONS)
SEES_lua/print      := $(FUNCTIONS) lua/scope
SEES_lua/math       := $(PRINT) lua/diagnose
SEES_lua/diagnose   := $(FUNCTIONS) lua/scope
SEES_lua/browse     := $(PRINT)
SEES_lua/files      := $(PRINT)
SEES_lua/experiment := $(FUNCTIONS)
SEES_lua/draw       := $(MATH)
SEES_lua/measure    := $(PRINT) lua/files
SEES_lua/pool       := $(VALUE)
SEES_lua/complete   := $(MATH) lua/files
SEES_lua/session    := $(MATH) lua/diagnose lua/files lua/measure lua/complete
SEES_lua            := $(MATH) lua/diagnose lua/browse lua/files lua/experiment lua/draw lua/measure lua/complete lua/pool lua/session lua/std
LANGUAGE            := lua $(SEES_lua)
SEES_lua/worker     := $(LANGUAGE) repl repl/terminal
SEES_repl/terminal  := $(LANGUAGE)
SEES_repl/viewer    := $(LANGUAGE) repl/terminal
SEES_repl/history   := $(LANGUAGE) repl/terminal
SEES_repl/entry     := $(LANGUAGE) repl/terminal
SEES_repl/paint     := $(LANGUAGE) repl/terminal repl/history repl/entry
SEES_repl/line      := $(LANGUAGE) repl/terminal repl/history repl/entry repl/paint
SEES_repl/commands  := $(LANGUAGE) repl/terminal repl/history repl/entry repl/line
SEES_repl/complete  := $(LANGUAGE) repl/terminal repl/entry
SEES_repl           := $(LANGUAGE) repl/terminal repl/viewer repl/history repl/entry repl/paint repl/line repl/commands repl/complete

# The rooms, and what their files are compiled with.
ROOMS      := $(patsubst SEES_%,%,$(sort $(filter SEES_%,$(.VARIABLES))))
CPU_FLAGS  := -O3 -fopenmp-simd -fno-math-errno -fno-trapping-math -ffp-contract=off
MPI        := $(firstword $(if $(MPICC),$(shell $(MPICC) --showme:incdirs 2>/dev/null)))
see         = $(addprefix -I,$(1) $(SEES_$(1))) $(if $(and $(MPI),$(filter lua/worker,$(1))),-isystem $(MPI)) $(if $(filter lua% repl%,$(1)),-I$(LUA_INC)) $(if $(filter gpu/cpu,$(1)),$(CPU_FLAGS))
FLAGS       = $(call see,$(patsubst %/,%,$(dir $<)))
KERNELS    := gpu/cuda/factor gpu/cuda/sparse gpu/cuda/kernels $(patsubst %/,%,$(wildcard gpu/cuda/kernels/*/))

GPU_SRC  := $(wildcard $(addsuffix /*.c,$(filter-out gpu/cuda%,$(filter gpu%,$(ROOMS)))))
LUA_SRC  := $(wildcard $(addsuffix /*.c,$(filter-out lua/worker,$(filter lua%,$(ROOMS)))) lua/parse/*.cpp)
REPL_SRC := $(wildcard $(addsuffix /*.c,$(filter repl%,$(ROOMS))))
STD_SRC  := $(wildcard lua/std/*.lua lua/std/lazy/*.lua lua/manual/*.lua lua/charts/*.lua lua/frames/*.lua lua/pool/*.lua lua/experiment/*/*.lua)
CUDA_SRC := $(wildcard $(addsuffix /*.cu,gpu/cuda $(KERNELS)))
LA_SRC   := gpu/cuda/la/la_library.c
SOLVER_SRC := gpu/cuda/la/solver_library.c
FFT_SRC  := gpu/cuda/la/fft_library.c
JIT_SRC  := $(wildcard gpu/cuda/jit/*.c)
# What the texts of compiled kernels include: those of the formulas, too.
JIT_TEXT := $(addprefix gpu/,op_macros.h op_list.h ops.def $(addprefix cuda/jit/,jit_job.h reduce_body.h turn_body.h $(patsubst %,kernel_%_body.h,operations random inputs reduce) kernel_body.h))
object    = $(patsubst %,$(OUT)/%.o,$(1))
GPU_OBJ  := $(call object,$(GPU_SRC))
LIB_OBJ  := $(GPU_OBJ) $(call object,$(LUA_SRC)) $(OUT)/lua/std/library.c.o
OBJ      := $(LIB_OBJ) $(call object,$(REPL_SRC))
CUDA_OBJ := $(call object,$(CUDA_SRC))
WORKER_OBJ := $(call object,$(wildcard lua/worker/*.c)) $(filter-out %/repl/main.c.o,$(call object,$(REPL_SRC)))
LA_OBJ   := $(call object,$(LA_SRC))
SOLVER_OBJ := $(call object,$(SOLVER_SRC))
FFT_OBJ  := $(call object,$(FFT_SRC))
$(LA_OBJ) $(SOLVER_OBJ) $(FFT_OBJ): CFLAGS += -isystem $(TOOLKIT)/include -fPIC
JIT_OBJ  := $(call object,$(JIT_SRC)) $(OUT)/gpu/cuda/jit/texts.c.o
COMPILER := $(BIN)/lumat-cuda-compile
COMP_OBJ := $(call object,gpu/cuda/compiler/nvrtc.c)
# What the program and the CUDA backend both have.
BOTH_OBJ := $(call object,gpu/inverse_size.c gpu/complex_numbers.c)
$(JIT_OBJ) $(BOTH_OBJ): CFLAGS += -fPIC
$(call object,lua/parse/jpeg.c): CFLAGS += $(if $(JPEG),-DLUMAT_JPEG)
# Elementwise work gives the same bits from every kernel: a product is never
# rounded together with a sum, in those that are compiled later neither, nor
# within the functions of CUDA's library that random numbers are made by.
$(call object,$(addprefix gpu/cuda/,map.cu small_maps.cu complex_map.cu stream.cu reduce.cu random.cu)): NVFLAGS += -fmad=false

all: $(LUMAT) $(PLUGINS) $(WORKER) $(OUT)/lumat.1 ## build the program
	@ln -sfn $(VARIANT)/bin/lumat $(BUILD)/lumat
	$(if $(NVCC),,@echo "no nvcc here: built for the CPU only")
	$(if $(JPEG),,@echo "no libjpeg here: built without JPEG")
	$(if $(WORKER),,@echo "no mpicc or ScaLAPACK here: pools are of one machine, and compute without them")
	$(if $(CUBLAS)$(filter 0,$(CUDA)),,@echo "no cuBLAS here: built without its kernels")
	$(if $(CUSOLVER)$(filter 0,$(CUDA)),,@echo "no cuSOLVER here: built without it, factorisations are the CPU's")
	$(if $(CUFFT)$(filter 0,$(CUDA)),,@echo "no cuFFT here: built without it, Fourier transforms are the CPU's")

$(LUMAT): $(OBJ)
	@mkdir -p $(@D)
	$(say) "  LINK  $@"
	$(Q)$(CC) $(SANFLAGS) -rdynamic -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $(OBJ) $(LIBS)
$(BIN)/lumat-worker: $(WORKER_OBJ) $(LIB_OBJ)
	@mkdir -p $(@D)
	$(say) "  LINK  $@"
	$(Q)OMPI_CC='$(CC)' $(MPICC) $(SANFLAGS) -rdynamic -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $(WORKER_OBJ) $(LIB_OBJ) $(SCALAPACK) $(LIBS)
# The program knows its manual; a page that is half written is none.
$(OUT)/lumat.1: $(LUMAT)
	$(say) "  MAN   $@"
	$(Q)LUMAT_NO_CUDA=1 $(LUMAT) --manual=roff >$@
man: $(OUT)/lumat.1 ## show the manual page
	@man -l $(OUT)/lumat.1
# Calls of CUDA that tests let fail go through faults.cu.
WRAPPED  := $(patsubst %,-Wl$(comma)--wrap=%,cudaGetLastError cudaPeekAtLastError $(shell sed -n 's/^[A-Z]*(\([A-Za-z0-9_]*\),.*)$$/\1/p' gpu/cuda/faults.def))
$(BIN)/liblumat-cuda.so: $(CUDA_OBJ) $(JIT_OBJ) $(BOTH_OBJ)
	@mkdir -p $(@D)
	$(say) "  LINK  $@"
	$(Q)$(NVCC) -shared -cudart static -Xlinker --exclude-libs,ALL -Xlinker --no-undefined $(patsubst -Wl$(comma)%,-Xlinker %,$(WRAPPED)) -o $@ $(CUDA_OBJ) $(JIT_OBJ) $(BOTH_OBJ)
# NVRTC, in a process of its own: see ask_compiler.c.
$(COMPILER): $(COMP_OBJ) $(JIT_OBJ)
	@mkdir -p $(@D)
	$(say) "  LINK  $@"
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ -ldl
# cuBLAS and cuSPARSE, in an object of their own: loading them takes long.
$(BIN)/liblumat-cuda-la.so: $(LA_OBJ)
	@mkdir -p $(@D)
	$(say) "  LINK  $@"
	$(Q)$(CC) $(SANFLAGS) -shared -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../lib:/usr/local/cuda/lib64' -o $@ $(LA_OBJ) -L$(TOOLKIT)/lib64 -lcublas -lcusparse
# cuSOLVER, in one more: it takes longer yet.
$(BIN)/liblumat-cuda-solver.so: $(SOLVER_OBJ)
	@mkdir -p $(@D)
	$(say) "  LINK  $@"
	$(Q)$(CC) $(SANFLAGS) -shared -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../lib:/usr/local/cuda/lib64' -o $@ $(SOLVER_OBJ) -L$(TOOLKIT)/lib64 -lcusolver -lcublas
# cuFFT, which is 280 MB.
$(BIN)/liblumat-cuda-fft.so: $(FFT_OBJ)
	@mkdir -p $(@D)
	$(say) "  LINK  $@"
	$(Q)$(CC) $(SANFLAGS) -shared -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../lib:/usr/local/cuda/lib64' -o $@ $(FFT_OBJ) -L$(TOOLKIT)/lib64 -lcufft
$(OUT)/%.c.o: %.c
	@mkdir -p $(@D)
	$(say) "  CC    $<"
	$(Q)$(CC) $(CFLAGS) $(FLAGS) -c -o $@ $<
$(OUT)/%.cpp.o: %.cpp
	@mkdir -p $(@D)
	$(say) "  CXX   $<"
	$(Q)$(CXX) $(CXXFLAGS) $(FLAGS) -c -o $@ $<
# What ptxas says of registers and spills is kept for `make lint`, which wants
# none of the latter in these kernels: NVOPT is not asked how they are compiled.
TIGHT := split16_hopper split16_ampere matmul_split16 matmul_simt matmul_dmma dot_stream dot_shuffle narrow_hopper narrow_mma narrow_planes
$(foreach f,$(TIGHT),$(OUT)/$(wildcard gpu/cuda/kernels/*/$f.cu).o): override NVOPT := -O3
$(OUT)/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(say) "  NVCC  $<"
	$(Q)$(NVCC) $(NVFLAGS) -Xptxas -v -MMD -MP -MF $(@:.o=.d) -c -o $@ $< 2>$(@:.o=.ptxas) || \
	  { cat $(@:.o=.ptxas); exit 1; }
	@grep -i warning $(@:.o=.ptxas) || true
$(OUT)/gpu/cuda/jit/texts.c.o: $(JIT_TEXT) gpu/cuda/jit/embed_texts
	@mkdir -p $(@D)
	@sh gpu/cuda/jit/embed_texts $(JIT_TEXT) >$(OUT)/gpu/cuda/jit/texts.c
	$(say) "  CC    $(OUT)/gpu/cuda/jit/texts.c"
	$(Q)$(CC) $(CFLAGS) $(call see,gpu/cuda/jit) -c -o $@ $(OUT)/gpu/cuda/jit/texts.c
# The library in Lua travels inside the program, as arrays of bytes.
$(OUT)/lua/std/library.c.o: $(STD_SRC) lua/std/embed
	@mkdir -p $(@D)
	@sh lua/std/embed $(STD_SRC) >$(OUT)/lua/std/library.c
	$(say) "  CC    $(OUT)/lua/std/library.c"
	$(Q)$(CC) $(CFLAGS) $(FLAGS) -c -o $@ $(OUT)/lua/std/library.c

# --- tests: programs in tests/gpu and scripts in tests/lua, each in a folder
# named after the room it tests; sessions in tests/repl
CTESTS   := $(patsubst tests/%.c,$(OUT)/tests/%,$(wildcard tests/gpu/*/test_*.c))
LUATESTS := $(wildcard tests/lua/test_*.lua tests/lua/*/test_*.lua)
# The longest begin, so that none is left to run alone at the end.
LONG     := $(patsubst %,tests/lua/%,test_scripts.lua math/test_ladder.lua experiment/test_comparing.lua value/test_memory.lua experiment/experiment_processes.t experiment/experiment_hosts.t pool/pool_waits.t pool/spmd.t)
LONG     += $(patsubst %,tests/repl/%,progress.session stopping.t painting.t)
TESTS    := $(CTESTS) $(LUATESTS) $(wildcard tests/lua/*.t tests/lua/*/*.t tests/repl/*.session tests/repl/*.t tests/faults/*.t)
FAULTS   := $(wildcard tests/faults/*.t) $(patsubst %,tests/%.t,repl/limits repl/escapes lua/experiment/experiment_kills)
GPUTESTS := $(CTESTS) $(LUATESTS)
PROVE     = LUMAT=$(abspath $(LUMAT)) LUMAT_TEST_DEVICE=$(1) LUMAT_NO_CUDA=$(2) prove $(4) --timer --failures --exec tests/run $(3)
$(OUT)/tests/%: tests/%.c $(GPU_OBJ)
	@mkdir -p $(@D)
	$(say) "  CC    $<"
	$(Q)$(CC) $(CFLAGS) $(addprefix -I,tests/gpu $(filter-out gpu/cuda%,$(filter gpu%,$(ROOMS)))) -Wl,-rpath,'$$ORIGIN/../../../lib' -o $@ $< $(GPU_OBJ) $(LIBS) -lcmocka

# Those of a room of the CUDA backend, which the program itself has not, and of
# what that starts.
$(OUT)/tests/gpu/jit/%: tests/gpu/jit/%.c $(JIT_OBJ) $(GPU_OBJ) | $(COMPILER)
	@mkdir -p $(@D)
	$(say) "  CC    $<"
	$(Q)$(CC) $(CFLAGS) -Itests/gpu -Itests/gpu/jit $(call see,gpu/cuda/jit) -Wl,-rpath,'$$ORIGIN/../../../lib' -o $@ $< $(JIT_OBJ) $(GPU_OBJ) $(LIBS) -lcmocka

# What tests of --safe start behind its fences.
ATTACK   := $(OUT)/tests/lua/value/attack_fence
$(ATTACK): tests/lua/value/attack_fence.c $(call object,lua/value/fence.c)
	@mkdir -p $(@D)
	$(say) "  CC    $<"
	$(Q)$(CC) $(CFLAGS) $(call see,lua/value) -o $@ $^ $(LUA_LIB) -lpthread -ldl -lm

# What goes before the C library, and lets allocations fail.
SHIM     := $(OUT)/tests/faults/fail_alloc.so
$(SHIM): tests/faults/fail_alloc.c
	@mkdir -p $(@D)
	$(say) "  CC    $<"
	$(Q)$(CC) -O2 -g -std=c11 -D_GNU_SOURCE $(CWARN) -fPIC -shared -o $@ $< -ldl

# What goes in the place of the CUDA backend, on the CPU. One source names the
# environment, which it finds in another way there.
FAKE     := $(OUT)/tests/faults/liblumat-cuda.so
FAKE_SRC := tests/faults/fake_cuda.c tests/faults/fake_exchange.c gpu/cpu/blas_library.c
FAKE_OBJ := $(filter-out %/blas_library.c.o,$(filter $(OUT)/gpu/cpu/% $(OUT)/gpu/program.c.o $(OUT)/gpu/inverse_size.c.o $(OUT)/gpu/complex_numbers.c.o $(OUT)/gpu/runtime/progress.c.o,$(GPU_OBJ)))
$(FAKE): $(FAKE_SRC) $(FAKE_OBJ)
	@mkdir -p $(@D)
	$(say) "  CC    $<"
	$(Q)$(CC) $(filter-out -MMD -MP,$(CFLAGS)) $(call see,gpu/cpu) -fPIC -shared -o $@ $^ -lsleef -lpthread -ldl -lm

# The CUDA backend itself, on CUDA's libraries that compute nothing.
FAKES    := $(addprefix $(OUT)/tests/faults/no_gpu/,liblumat-cuda.so liblumat-cuda-la.so liblumat-cuda-solver.so liblumat-cuda-fft.so)
no_gpu    = $(say) "  CXX   $<"; mkdir -p $(@D); $(CXX) $(filter-out -MMD -MP -fno-exceptions,$(CXXFLAGS)) -isystem $(TOOLKIT)/include -fPIC -shared -Wl,--no-undefined
$(word 1,$(FAKES)): tests/faults/fake_cudart.cpp $(CUDA_OBJ) $(JIT_OBJ) $(BOTH_OBJ)
	$(no_gpu) $(WRAPPED) -o $@ $^ -lpthread -ldl
$(word 2,$(FAKES)): tests/faults/fake_cublas.cpp tests/faults/fake_library.h $(LA_OBJ)
	$(no_gpu) -o $@ $^
$(word 3,$(FAKES)): tests/faults/fake_cusolver.cpp tests/faults/fake_library.h $(SOLVER_OBJ)
	$(no_gpu) -o $@ $^
$(word 4,$(FAKES)): tests/faults/fake_cufft.cpp tests/faults/fake_library.h $(FFT_OBJ)
	$(no_gpu) -o $@ $^

# A sub-make, because what was missing when this one started is there now.
run: packages ## build and start the shell; without a terminal, the tour
	@$(MAKE) --no-print-directory all
	@if [ -t 0 ]; then exec $(LUMAT); else exec $(LUMAT) scripts/tour.lua; fi
test: packages ## build and run every test, JOBS=3 at a time: they often wait
	@$(MAKE) --no-print-directory all test-programs
	@$(call PROVE,cpu,1,$(LONG) $(filter-out $(LONG),$(TESTS)),--jobs $(or $(JOBS),3))
test-programs: $(CTESTS) $(ATTACK) $(SHIM) $(FAKE)
check-faults: all test-programs ## let memory, disks and processes fail: SECONDS=60 a tool, SEED=1
	@SEED=$(or $(SEED),1) SECONDS=$(or $(SECONDS),60) \
	  LUMAT_TEST_SEED=$(or $(SEED),1) LUMAT_TEST_KILLS=$(or $(SECONDS),60) $(call PROVE,cpu,1,$(FAULTS))
check-driver: all $(FAKES) ## let calls of the GPU's driver fail, without a GPU
	@LUMAT_FAKE=$(abspath $(OUT)/tests/faults/no_gpu) $(call PROVE,cpu,,tests/faults/driver.t)
check-gpu: ## run the tests on a GPU with what is built; no GPU is a failure
	@$(call PROVE,cuda,,$(GPUTESTS))
check-slow: all ## large factorisations; a mixed load, SECONDS=600, DEVICE=auto: no memory may stay
	$(LUMAT) --no-init --device $(or $(DEVICE),auto) tests/slow/long_residuals.lua
	LUMAT_SECONDS=$(or $(SECONDS),600) $(LUMAT) --no-init --device $(or $(DEVICE),auto) tests/slow/flat.lua
bench: all ## time the kernels and the language
	$(LUMAT) scripts/bench.lua
	$(LUMAT) scripts/bench_operations.lua
	$(LUMAT) scripts/bench_sparse.lua
	$(LUMAT) scripts/bench_pool.lua
	$(LUMAT) scripts/bench_dot.lua
	$(LUMAT) scripts/bench_matmul.lua
	$(LUMAT) scripts/bench_workers.lua
packages: $(BUILD)/.packages
$(BUILD)/.packages: .ci/packages
	@sh .ci/packages && mkdir -p $(BUILD) && touch $@

# --- keeping house
FORMATTED = $(filter-out lua/lualib/%,$(wildcard $(addsuffix /*.[ch],$(ROOMS) tests/gpu tests/gpu/* tests/fuzz tests/faults) $(foreach k,gpu/cuda $(KERNELS),$k/*.h $k/*.cu)))
lint: compile_commands.json $(OBJ) ## check format, headers, warnings and the house rules
	@sh .ci/lint $(OUT) "$(FORMATTED)" "$$(printf '%s\n'$(foreach r,$(ROOMS), '$r $(call see,$r)'))" "$(TIGHT)"
format: ## let clang-format lay out the sources
	clang-format -i $(FORMATTED)
compile_commands.json: Makefile $(GPU_SRC) $(LUA_SRC) $(REPL_SRC) ## for editors and clang-tidy
	@{ echo '['; sep=; $(foreach f,$(filter %.c,$(GPU_SRC) $(LUA_SRC) $(REPL_SRC)),f=$f; i='$(call see,$(patsubst %/,%,$(dir $f)))'; \
	  printf '%s{"directory":"%s","file":"%s","command":"cc -std=c11 -D_GNU_SOURCE %s -c %s"}\n' "$$sep" "$(CURDIR)" $$f "$$i" $$f; sep=,;) echo ']'; } >$@

install: all ## install under $(DESTDIR)$(PREFIX)
	install -Dm755 $(LUMAT) $(DESTDIR)$(PREFIX)/bin/lumat
	for f in $(PLUGINS); do install -Dm755 $$f $(DESTDIR)$(PREFIX)/lib/lumat/$$(basename $$f); done
	$(if $(WORKER),install -Dm755 $(WORKER) $(DESTDIR)$(PREFIX)/lib/lumat/lumat-worker)
	install -Dm644 $(OUT)/lumat.1 $(DESTDIR)$(PREFIX)/share/man/man1/lumat.1
	for f in scripts/*; do [ ! -f "$$f" ] || install -Dm644 "$$f" "$(DESTDIR)$(PREFIX)/share/lumat/$$f"; done
	install -Dm644 repl/completions/lumat.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/lumat
	install -Dm644 repl/completions/_lumat $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_lumat
uninstall: ## remove what install put there
	rm -f $(DESTDIR)$(PREFIX)/bin/lumat $(DESTDIR)$(PREFIX)/share/man/man1/lumat.1
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/lumat $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_lumat
	rm -rf $(DESTDIR)$(PREFIX)/lib/lumat $(DESTDIR)$(PREFIX)/share/lumat
dist: all test-programs ## make a folder that runs elsewhere: build/dist
	sh .ci/dist $(OUT) $(BUILD)/dist

clean: ## remove everything built
	rm -rf $(BUILD) compile_commands.json
help: ## this list
	@awk '/^[a-z_.-]+:.*## / {name = text = $$0; sub(/:.*/, "", name); sub(/.*## /, "", text); printf "  make %-22s%s\n", name, text}' $(firstword $(MAKEFILE_LIST))
	@sed -n '3,7s/^# */  /p' $(firstword $(MAKEFILE_LIST))

.PHONY: all man run test test-programs check-faults check-driver check-gpu check-slow bench packages lint format install uninstall dist clean help
.DELETE_ON_ERROR:
.SECONDARY:
-include $(OBJ:.o=.d) $(WORKER_OBJ:.o=.d) $(CUDA_OBJ:.o=.d) $(LA_OBJ:.o=.d) $(SOLVER_OBJ:.o=.d) $(FFT_OBJ:.o=.d) $(JIT_OBJ:.o=.d) $(COMP_OBJ:.o=.d)
