# shellcheck shell=sh disable=SC2034,SC2154 # variables of otelprof-host, and for it
# Edits our line in /etc/ld.so.preload, and the links that it names. Read by otelprof-host.
#
# The file is replaced as a whole, by rename(2): every program that starts has the old one or the new one. All other lines
# stay unchanged, byte by byte; a last line without an end gets one. The code that removes the line uses built-ins alone,
# for with a broken preload no other program may run.

PRELOAD=/etc/ld.so.preload
RUN=/run/opentelemetry/otelprof
OUR_LINE=$RUN/\$LIB/libotelprof.so # $LIB is for the loader
LOADER=/lib64/ld-linux-x86-64.so.2 # psABI

# Seconds, command: returns the command's exit status; 137 if it did not end in time. Uses built-ins: with a preload that
# hangs, `timeout` would hang as well. On a busy machine the time is longer: until this shell, too, has had a good second of
# processor time.
ENOUGH_LOOKS=5000 # polls of up to 200 us, by the shell
run_bounded() {
    limit=$1 looks=0
    shift
    "$@" &
    child=$!
    {
        if read -r since _ </proc/uptime; then
            while read -r state </proc/$child/stat; do
                case ${state##*) } in [ZX]*) break ;; esac
                read -r now _ </proc/uptime
                looks=$((looks + 1))
                if [ $((${now%.*} - ${since%.*})) -ge "$limit" ] && [ $looks -gt $ENOUGH_LOOKS ]; then
                    kill -9 "$child"
                    break
                fi
            done
        fi
        wait $child
    } 2>/dev/null
}

# Sets $others_lines, each line with its end, $has_our_line, and $others_name_us: whether one of the others names our
# objects. Fails if the file cannot be read.
read_preload_file() {
    others_lines='' has_our_line=no others_name_us=no
    [ -e $PRELOAD ] || return 0
    [ -r $PRELOAD ] || return 1
    while IFS= read -r line || [ -n "$line" ]; do
        if [ "$line" = "$OUR_LINE" ]; then
            has_our_line=yes
        else
            others_lines=$others_lines$line$newline
            case ${line%%#*} in *"$RUN/"*) others_name_us=yes ;; esac
        fi
    done <$PRELOAD
}

is_mount_point() {
    while read -r _ _ _ _ point _; do
        [ "$point" != "$1" ] || return 0
    done </proc/self/mountinfo
    return 1
} 2>/dev/null

# Succeeds if our line may be put there, or prints why not.
may_add_line() {
    if [ -h $PRELOAD ]; then
        say "$PRELOAD is a symbolic link: it is left as it is"
    elif [ -e $PRELOAD ] && [ ! -f $PRELOAD ]; then
        say "$PRELOAD is not a regular file: it is left as it is"
    elif is_mount_point $PRELOAD; then
        say "$PRELOAD is a mount point, which cannot be replaced by a new file: it is left as it is"
    elif [ -e $PRELOAD ] && ! is_only_roots $PRELOAD; then
        say "$PRELOAD $why: it is left as it is"
    elif ! read_preload_file; then
        say "$PRELOAD cannot be read: it is left as it is"
    elif [ -e $PRELOAD ] && [ "$(tr -d '\000' <$PRELOAD | wc -c)" != "$(wc -c <$PRELOAD)" ]; then
        say "$PRELOAD has a NUL byte, behind which the loader reads nothing: it is left as it is"
    else
        return 0
    fi
    return 1
}

# Replaces the file by the given contents. The mode stays if all users may read the file: the loader skips a file that a
# process may not read.
replace_preload_file() {
    mode=644 given=''
    [ ! -e $PRELOAD ] || given=$(run_bounded 5 stat -c %a $PRELOAD 2>/dev/null) || return 1
    case $given in
    *[4567][4567][4567]) mode=$given ;;
    ?*) tell "$PRELOAD had mode $given, with which not every program may read it: it has 644 now" ;;
    esac
    new=$PRELOAD.otelprof.$$
    if (umask 077 && set -C && printf '%s' "$1" >"$new") 2>/dev/null; then
        run_bounded 5 chmod "$mode" "$new" && run_bounded 5 sync "$new" && run_bounded 5 mv -f "$new" $PRELOAD && return 0
    fi
    return 1
}

# Removes our line, if it is there, and the file if nothing else was in it. Until the line is gone no other program may run,
# so each step that needs a program is followed by one of built-ins.
remove_line() {
    read_preload_file || {
        say "$PRELOAD cannot be read"
        return 1
    }
    if [ "$has_our_line" = yes ]; then
        if [ -z "$others_lines" ] || [ -h $PRELOAD ] || is_mount_point $PRELOAD || ! replace_preload_file "$others_lines"; then
            printf '%s' "$others_lines" 2>/dev/null >$PRELOAD || {
                say "$PRELOAD cannot be written: our line is still in it"
                [ ! -e "${new-}" ] || rm -f "$new"
                return 1
            }
        fi
        [ ! -e "${new-}" ] || rm -f "$new"
        [ -s $PRELOAD ] || [ -h $PRELOAD ] || is_mount_point $PRELOAD || rm -f $PRELOAD
    fi
    [ $others_name_us = no ] || {
        say "$PRELOAD names $RUN in a line that is not ours: remove it by hand; the objects stay where it finds them"
        return 1
    }
}

# --- the links ---

# Sets $lib to what the loader of 64-bit programs substitutes for $LIB: runs the loader with an object in each possible
# folder.
ask_loader_for_lib() {
    make_scratch
    for lib in lib64 lib lib/x86_64-linux-gnu; do
        mkdir -p "$scratch/asked/$lib" && ln -s "$folder/libotelprof.so" "$scratch/asked/$lib/" || return 1
    done
    listed=$(run_bounded 5 env LD_PRELOAD="$scratch/asked/\$LIB/libotelprof.so" $LOADER --list "$folder/libotelprof.so" 2>/dev/null)
    rm -rf "$scratch/asked"
    lib=${listed#*"=> $scratch/asked/"}
    lib=${lib%%/libotelprof.so *}
    case $lib in
    "$listed" | '')
        if [ ! -x $LOADER ] || said=$(run_bounded 5 $LOADER --list "$folder/libotelprof.so" 2>&1); then
            say "$LOADER does not say what \$LIB is: no glibc is here that reads $PRELOAD"
        else
            say "$folder/libotelprof.so cannot be loaded: ${said:-status $?}"
        fi
        return 1
        ;;
    esac
}

# Puts the objects below a folder, where loaders search for them: ours for 64-bit programs, one without code for the
# others.
make_links() {
    ask_loader_for_lib || return 1
    for each in lib lib32 lib/i386-linux-gnu; do
        [ "$each" = "$lib" ] || link_into "$1/$each" "$folder/lib32/libotelprof.so" || return 1
    done
    link_into "$1/$lib" "$folder/libotelprof.so" "$folder/libotelprof-flush.so" "$folder/libotelprof-cpp.so"
}

# Folder, objects: replaces an existing link as a whole.
link_into() {
    into=$1
    shift
    (umask 022 && mkdir -p "$into") || return 1
    for object in "$@"; do
        name=${object##*/}
        ln -sfn "$object" "$into/.$name.$$" && mv -fT "$into/.$name.$$" "$into/$name" || return 1
    done
}

remove_links() {
    for each in lib64 lib32 lib; do
        rm -rf "${RUN:?}/$each"
    done
    rmdir $RUN ${RUN%/*} 2>/dev/null
    return 0
}
