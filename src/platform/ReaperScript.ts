/**
 * The program of the reaper, in POSIX sh with grep and kill only (spec section 7).
 *
 * It reads lines from its stdin: `+ UUID` (a tree of this generation is about to start), `+ UUID PID START` (it
 * has started), `- UUID` and `- UUID PID` (forget it). Its stdin ends when the host ends, however that comes
 * about; then it kills what is still registered and leaves. Pids are reused, so a group or session counts as
 * registered only while the leader's start time still matches or a member carries one of the markers. Whatever
 * carries a marker is killed wherever it is. Rounds are repeated until one finds nothing, at most 40.
 */
import { MARKER_VARIABLE } from "./Marker.ts"

/** Source text for `sh -c`. */
export const reaperScript = `
trap '' INT TERM HUP QUIT PIPE TSTP
list=
trusted=' '

drop() {
  kept=
  for entry in $list; do
    case $entry in "$1":*) ;; *) kept="$kept $entry" ;; esac
  done
  list=$kept
}

while read -r word id pid start; do
  case $word in
    +) drop "$id:"
       [ -z "$pid" ] || drop "$id:$pid"
       list="$list $id:$pid:$start" ;;
    -) drop "$id:$pid" ;;
  esac
done
[ -n "$list" ] || exit 0

if [ ! -r /proc/self/stat ]; then
  for entry in $list; do
    pid=\${entry#*:}; pid=\${pid%%:*}
    [ -z "$pid" ] || kill -s KILL -- "-$pid"
  done
  exit 0
fi

# Fields of /proc/PID/stat after the name, which may hold anything, even line ends.
look() {
  line=
  { while read -r part || [ -n "$part" ]; do line="$line $part"; done < "/proc/$1/stat"; } 2>/dev/null
  case $line in *') '*) ;; *) return 1 ;; esac
  set -- \${line##*') '}
  state=$1 group=$3 session=$4 started=\${20}
}

registered=' '
for entry in $list; do
  pid=\${entry#*:}; start=\${pid#*:}; pid=\${pid%%:*}
  [ -n "$pid" ] || continue
  registered="$registered$pid "
  if look "$pid" && [ "$started" = "$start" ]; then
    trusted="$trusted$pid "
    kill -s KILL -- "-$pid"
  fi
done

set --
for entry in $list; do set -- "$@" -e "${MARKER_VARIABLE}=\${entry%%:*}"; done

round=0 found=1
while [ -n "$found" ] && [ "$round" -lt 40 ]; do
  round=$((round + 1)) found=
  carriers=' '
  for file in $(grep -lF "$@" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}; pid=\${pid%/environ}
    carriers="$carriers$pid "
    look "$pid" || continue
    for number in $group $session; do
      case $registered in *" $number "*)
        case $trusted in *" $number "*) ;; *) trusted="$trusted$number " ;; esac ;;
      esac
    done
  done
  for folder in /proc/[0-9]*; do
    pid=\${folder#/proc/}
    look "$pid" || continue
    case $state in Z|X|x) continue ;; esac
    case "$carriers" in
      *" $pid "*) ;;
      *) case "$trusted" in *" $group "*|*" $session "*) ;; *) continue ;; esac ;;
    esac
    kill -s KILL -- "$pid" && found=1
  done
done
`
