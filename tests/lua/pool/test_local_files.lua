-- What test_pool_files.lua tests, of processes that the prompt started itself.
POOL_LAUNCHER = "local"
require "pool.test_pool_files"
