# shellcheck shell=sh disable=SC2034,SC2154 # variables of otelprof-host, and for it
# Runs `otelprof host verify`: checks whether programs run with the preload as they do without. Read by otelprof-host.
#
# Each program runs without and with the preload, once for each way in which a loader gets a preload, with an environment of
# PATH alone. Exit status, standard output and standard error are compared byte by byte. As root this happens in a mount
# namespace of its own, in which /etc/ld.so.preload has our line: the machine's own file is not touched.

LIMIT_S=5 # for programs that do nothing

# Name of the results, variables and command: writes NAME.out and NAME.err, and sets $status.
run_into() {
    results=$scratch/$1
    shift
    run_bounded $LIMIT_S env -i PATH="$PATH" "$@" >"$results.out" 2>"$results.err"
    status=$?
}

# Does so with the preload: by variables, or by the namespace's own /etc/ld.so.preload.
run_with() {
    if [ -n "$variables" ]; then
        # shellcheck disable=SC2086 # they are several
        run_into with $variables "$@"
    else
        printf '%s' "$others_lines$OUR_LINE$newline" >/etc/ld.so.preload
        run_into with "$@"
        printf '%s' "$others_lines" >/etc/ld.so.preload
    fi
}

# Compares two files, byte by byte.
same() {
    if [ -s "$1" ] || [ -s "$2" ]; then
        [ "$(od -An -v -tx1 <"$1")" = "$(od -An -v -tx1 <"$2")" ]
    fi
}
first_line() {
    read -r first <"$1"
    echo "${first:-nothing}"
}

differs() {
    say "verify: $label, with the preload $way, $1"
    failed=1
    # a program that hangs once would hang each time
    [ "$status" != 137 ] || finish_verification
}

# err or out, command: succeeds if the output is as without the preload. Output that differs at each run
# without it does not count.
is_written_alike() {
    written=$1
    shift
    same "$scratch/with.$written" "$scratch/without.$written" && return
    mv "$scratch/without.$written" "$scratch/before.$written"
    run_into without "$@"
    ! same "$scratch/before.$written" "$scratch/without.$written"
}

# Takes the label of a program, and a command.
try() {
    label=$1
    shift
    run_into without "$@"
    expected=$status
    run_with "$@"
    tried=$((tried + 1))
    if [ "$status" != "$expected" ]; then
        differs "ends with status $status instead of $expected"
    elif ! is_written_alike err "$@"; then
        differs "writes another standard error: $(first_line "$scratch/with.err")"
    elif [ "$label" != musl ] && ! is_written_alike out "$@"; then
        differs "writes another standard output: $(first_line "$scratch/with.out")"
    fi
}

# --- the programs ---

program_at() {
    for place in /usr/bin /bin /usr/sbin /sbin /usr/local/bin /usr/local/sbin /usr/local/go/bin; do
        [ ! -x "$place/$1" ] || {
            program=$place/$1
            return 0
        }
    done
    return 1
}

try_ordinary() {
    ! program_at true || try true "$program"
    ! program_at ls || try ls "$program" "$folder"
    # shellcheck disable=SC2016 # for that shell
    ! program_at sh || try sh "$program" -c 'echo $((6 * 7)); (echo forked) >&2; exit 3'
    ! program_at env || try env "$program" -u LD_PRELOAD -u OTEL_PROFILER_EXCLUDE -u OTEL_PROFILER_INCLUDE -u OTEL_PROFILER_MIN_LIFETIME
    ! program_at ldconfig || try 'ldconfig (static)' "$program" --version
    ! program_at busybox || try busybox "$program" echo text
    for name in runc containerd podman go; do
        if program_at $name; then
            try "$name (Go)" "$program" --version
            break
        fi
    done
}

# Checks the exporter: every profiled program loads it a second after its start, and complains if it cannot.
try_exporter() {
    way='by LD_PRELOAD, and exporting to a file'
    variables="$variables OTEL_PROFILER_MIN_LIFETIME=0 OTEL_PROFILES_EXPORTER=otlp_file OTEL_PROFILER_FILE=$scratch/profiles"
    ! program_at true || try true "$program"
}

# Runs a 32-bit C library, which is a program as well: it prints its version.
try_32_bit() {
    for place in /lib32 /usr/lib32 /lib/i386-linux-gnu /usr/lib/i386-linux-gnu /lib /usr/lib; do
        if [ -x /lib/ld-linux.so.2 ] && [ -f $place/libc.so.6 ]; then
            try 'a 32-bit program' /lib/ld-linux.so.2 $place/libc.so.6
            break
        fi
    done
}

# Runs musl's loader, which lists itself, with addresses that differ each time, and relocates what is
# preloaded.
try_musl() {
    for musl in /lib/ld-musl-*.so.1; do
        [ ! -x "$musl" ] || try musl "$musl" --list "$musl"
    done
}

# Checks that the loader found the object: otherwise all of the above would mean nothing.
check_loaded() {
    run_with "$LOADER" --list "$folder/libotelprof.so"
    case $(cat "$scratch/with.out") in
    *"=> $links/"*) ;;
    *)
        say "verify: the loader does not find the object with the preload $way"
        failed=1
        ;;
    esac
}

# --- all ---

verify_by_variable() {
    # a process that lives for less than an hour sends nothing, whatever configuration files set
    way='by LD_PRELOAD' variables="LD_PRELOAD=$folder/libotelprof.so OTEL_PROFILER_MIN_LIFETIME=3600000"
    try_ordinary
    try_musl
    [ "$failed" = 0 ] || return
    # whatever configuration files set
    way='by LD_PRELOAD, and profiled'
    variables="$variables OTEL_PROFILER_EXCLUDE=none OTEL_PROFILER_INCLUDE=*"
    try_ordinary
    try_exporter
    way="by LD_PRELOAD with \$LIB" variables="LD_PRELOAD=$links/\$LIB/libotelprof.so"
    try_32_bit
    check_loaded
}

verify_by_file() {
    way='by /etc/ld.so.preload' variables=''
    try_ordinary
    try_32_bit
    try_musl
    check_loaded
}

finish_verification() {
    [ "$failed" != 0 ] || tell "verified: $tried runs with the preload are as without"
    exit "$failed"
}

# Succeeds if no mount that is made here is visible elsewhere.
is_apart() {
    while read -r mount; do
        case $mount in *' shared:'*) return 1 ;; esac
    done </proc/self/mountinfo
}

# Makes /run empty from here on, and gives /etc, with all that was in it, an ld.so.preload of its own. Fails if that is
# not possible.
make_room_of_its_own() {
    is_apart && mount -n -t tmpfs -o mode=755 tmpfs /run &&
        mkdir /run/verify /run/verify/real /run/verify/etc && mount -o bind /etc /run/verify/real || return 1
    for entry in /run/verify/real/* /run/verify/real/.[!.]*; do
        if [ "${entry##*/}" = ld.so.preload ]; then
            continue
        elif [ -h "$entry" ]; then # the link may be relative
            cp -P "$entry" /run/verify/etc/ || return 1
        elif [ "${entry##*/}" = opentelemetry ]; then # the profiler follows no link
            mkdir /run/verify/etc/opentelemetry && mount -o bind "$entry" /run/verify/etc/opentelemetry || return 1
        elif [ -e "$entry" ]; then
            ln -s "$entry" /run/verify/etc/ || return 1
        fi
    done
    printf '%s' "$others_lines" >/run/verify/etc/ld.so.preload && mount -o rbind /run/verify/etc /etc
} 2>/dev/null

# apart: in a mount namespace of its own. Does not return.
verify_here() {
    tried=0 failed=0
    read_preload_file
    if [ "$1" = apart ] && make_room_of_its_own; then
        scratch=/run/verify links=$RUN
    else
        make_scratch
        links=$scratch/links
    fi
    make_links "$links" || exit 1
    verify_by_variable
    [ "$failed" = 0 ] || finish_verification
    if [ "$links" = "$RUN" ]; then
        verify_by_file
    else
        tell "not verified by /etc/ld.so.preload itself: that needs root's right to a mount namespace"
    fi
    finish_verification
}

# Clears the environment's settings of the profiler, which would also reach `env`, which starts the programs.
verify() {
    if is_root && unshare -m true 2>/dev/null; then
        env -i PATH="$PATH" unshare -m /bin/sh "$0" verify-apart
    else
        env -i PATH="$PATH" TMPDIR="${TMPDIR:-/tmp}" /bin/sh "$0" verify-here
    fi
}
