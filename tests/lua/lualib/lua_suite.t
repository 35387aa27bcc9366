#!/bin/sh
# Lua's own test suite (github.com/lua/lua, tag v5.4.4, folder testes) run by
# lumat instead of lua. LUA_TESTS is that folder; without it this is skipped.
set -u

if [ -z "${LUA_TESTS:-}" ]; then
    echo "1..0 # SKIP LUA_TESTS does not point to Lua's folder testes"
    exit 0
fi
if [ ! -f "$LUA_TESTS/all.lua" ]; then
    echo "1..0 # SKIP there is no all.lua in LUA_TESTS, $LUA_TESTS"
    exit 0
fi

here=$(cd "$(dirname "$0")" && pwd)
lumat=${LUMAT:-$here/../../../build/lumat}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# The suite writes into its folder, so a copy of it is run.
cp -R "$LUA_TESTS" "$scratch/testes" && cd "$scratch/testes" || exit 1

echo 1..2
number=1
report() {
    if [ "$1" -eq 0 ]; then
        echo "ok $number $2"
    else
        echo "not ok $number $2"
        tail -n 20 "$scratch/output" | sed 's/^/# /'
    fi
    number=$((number + 1))
}

"$lumat" --no-init --bytecode -e "_U=true" all.lua >"$scratch/output" 2>&1
report $? "all.lua ends without an error"
grep -q '^final OK' "$scratch/output"
report $? "and says final OK"
