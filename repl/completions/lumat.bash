# bash completion for lumat: options, their values, scripts.

# The devices there may be, without asking a driver.
_lumat_devices()
{
    local gpu
    echo cpu
    echo cuda
    for gpu in /dev/nvidia[0-9]*; do
        [ -e "$gpu" ] && echo "cuda:${gpu#/dev/nvidia}"
    done
}

# Whether a script, or -, stands among the words before the current one: what
# follows is the script's.
_lumat_has_script()
{
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -e | -p | --device | --color | --manual | --memory | --time)
            [ "${COMP_WORDS[i + 1]}" = "=" ] && ((i++))
            ((i++))
            while [ "${COMP_WORDS[i + 1]}" = ":" ]; do ((i += 2)); done
            ;;
        -?*) ;;
        *) return 0 ;;
        esac
    done
    return 1
}

# Offers words that begin as typed; bash takes a word to begin behind its last
# = or :, so what stands before that is left away.
_lumat_offer()
{
    local typed=$1 word
    local before=${typed%"${typed##*[=:]}"}
    COMPREPLY=()
    for word in $2; do
        [[ $word == "$typed"* ]] && COMPREPLY+=("${word#"$before"}")
    done
}

_lumat_files()
{
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -X '!*.lua' -- "$1"; compgen -d -- "$1")
}

_lumat()
{
    local line=${COMP_LINE:0:COMP_POINT}
    local word=${line##*[[:space:]]} before
    before=${line%"$word"}
    before=${before%"${before##*[![:space:]]}"}
    before=${before##*[[:space:]]}
    COMPREPLY=()
    case $word in
    --device=*) _lumat_offer "${word#*=}" "$(_lumat_devices)"; return ;;
    --color=*) _lumat_offer "${word#*=}" "auto always never"; return ;;
    --manual=*) _lumat_offer "${word#*=}" "text markdown roff"; return ;;
    esac
    if _lumat_has_script; then
        compopt -o default
        return
    fi
    case $before in
    -e | -p) return ;;
    --device) _lumat_offer "$word" "$(_lumat_devices)"; return ;;
    --color) _lumat_offer "$word" "auto always never"; return ;;
    --manual) _lumat_offer "$word" "text markdown roff"; return ;;
    esac
    case $word in
    --*) _lumat_offer "$word" "--quiet --device= --color= --no-init --safe
        --safe-language --memory= --time= --strict --bytecode --spmd
        --spmd-check --manual= --version --help" ;;
    -*) _lumat_offer "$word" "-e -p -i -q -v -h --quiet --device= --color=
        --no-init --safe --safe-language --memory= --time= --strict --bytecode
        --spmd --spmd-check --manual= --version --help" ;;
    *) _lumat_files "$word" ;;
    esac
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}

complete -F _lumat lumat
