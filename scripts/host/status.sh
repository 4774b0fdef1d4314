# shellcheck shell=sh disable=SC2034,SC2154,SC2231 # variables of otelprof-host, and for it; no folder here has a space
# Prints `otelprof host status`. Read by otelprof-host.

show() { printf '%s\n' "$1"; }

carriage_return=$(printf '\r')

# Sets $processes to the number of processes that have the library mapped. Without root's rights: of those that may
# be read.
count_processes() {
    processes=0
    for maps in /proc/[0-9]*/maps; do
        case $(cat "$maps" 2>/dev/null) in *'/libotelprof.so'*) processes=$((processes + 1)) ;; esac
    done
}

show_links() {
    for link in $RUN/lib*/libotelprof.so $RUN/lib*/*/libotelprof.so; do
        [ -h "$link" ] || continue
        target=$(readlink "$link")
        release=''
        [ ! -r "${target%/*}/host/release" ] || read -r release <"${target%/*}/host/release"
        [ -e "$link" ] || release='which is not there'
        show "link: $link -> $target${release:+ ($release)}"
    done
}

show_kill_switches() {
    switches=''
    for switch in $CONFIGURATION/disabled $RUN/disabled; do
        ! is_there "$switch" || switches="$switches $switch"
    done
    show "kill switch:${switches:- none}${switches:+: nothing is profiled}"
}

# Removes the blanks at the ends of $text.
trim() {
    text=$1
    text=${text#"${text%%[! 	]*}"}
    text=${text%"${text##*[! 	]}"}
}

# File: replaces $include by the file's value of OTEL_PROFILER_INCLUDE, from its last line of that name. As for the
# profiler, blanks around both parts are no part of them, nor is a pair of quotes.
read_include() {
    while IFS= read -r line || [ -n "$line" ]; do
        trim "${line%%=*}"
        [ "$text" = OTEL_PROFILER_INCLUDE ] || continue
        trim "${line#*=}"
        trim "${text%"$carriage_return"}"
        case $text in
        \"*\" | \'*\')
            text=${text#?}
            text=${text%?}
            ;;
        esac
        include=$text
    done <"$1"
}

# Succeeds if the profiler reads the files of a folder: it follows no link to the folder.
is_read_from() {
    case $1 in */conf.d) is_read_from "${1%/*}" || return ;; esac
    [ ! -h "$1" ] && is_only_roots "$1"
}

# Prints folders from which nothing is read.
show_refused_folders() {
    for refused in $CONFIGURATION $CONFIGURATION/conf.d; do
        if [ -h "$refused" ]; then
            show "configuration: $refused is refused: it is a symbolic link"
        elif [ -d "$refused" ] && ! is_only_roots "$refused"; then
            show "configuration: $refused is refused: it $why"
        else
            continue
        fi
        return
    done
}

# Goes from the weakest to the strongest. The profiler reads regular files alone, of root, that no other user may
# write.
FILE_MOST=16384 # bytes
show_configuration() {
    include=''
    show_refused_folders
    for file in $CONFIGURATION/otelprof.conf $CONFIGURATION/conf.d/*.conf; do
        if ! is_there "$file" || ! is_read_from "${file%/*}"; then
            continue
        elif [ -h "$file" ] || [ ! -f "$file" ]; then
            show "configuration: $file is refused: it is not a regular file"
        elif ! is_only_roots "$file"; then
            show "configuration: $file is refused: it $why"
        elif [ "$(stat -c %s "$file")" -gt $FILE_MOST ]; then
            show "configuration: $file is refused: it is larger than $FILE_MOST bytes"
        else
            show "configuration: $file"
            [ ! -r "$file" ] || read_include "$file"
        fi
    done
    show "OTEL_PROFILER_INCLUDE: ${include:-empty: nothing is profiled}"
}

show_crash_guard() {
    case $(stat -c %a "$RUN/crash" 2>/dev/null) in
    '') show "crash guard: off, for $RUN/crash is missing" ;;
    1*) show "crash guard: on" ;;
    *) show "crash guard: on for root's programs alone" ;;
    esac
}

unit_state() {
    if command -v systemctl >/dev/null; then
        enabled=$(systemctl is-enabled "$UNIT" 2>/dev/null) active=$(systemctl is-active "$UNIT" 2>/dev/null)
        show "$UNIT: ${enabled:-not found}, ${active:-inactive}"
    else
        show "$UNIT: there is no systemd here"
    fi
}

# Succeeds if programs load the profiler: the line is there and leads to an object.
is_armed() {
    read_preload_file
    [ "$has_our_line" = yes ] || return 1
    for link in $RUN/lib*/libotelprof-flush.so $RUN/lib*/*/libotelprof-flush.so; do
        [ ! -s "$link" ] || [ ! -s "${link%/*}/libotelprof.so" ] || return 0
    done
    return 1
}

show_status() {
    armed=no
    ! is_armed || armed=yes
    show "armed: $armed"
    unit_state
    read_preload_file || has_our_line='not known, for the file cannot be read'
    show "line in $PRELOAD: $has_our_line"
    show_links
    show_kill_switches
    show_configuration
    show_crash_guard
    count_processes
    show "processes that have the profiler loaded: $processes"
    [ $armed = yes ] || exit 3
}
