#!/bin/sh
# A child that ends badly in one named way. usage: process-tree.sh MODE
# It prints "PID PID ..." of what it started on one line as soon as all of it runs.
case $1 in
  well)
    echo ready
    exec cat >/dev/null ;;
  deaf) # neither end of input nor TERM
    trap '' TERM
    echo ready
    while :; do sleep 1; done ;;
  polite) # leaves on TERM only
    trap 'exit 0' TERM
    echo ready
    while :; do sleep 0.05; done ;;
  escaped) # a descendant in a session of its own, then ends with its input
    setsid sh -c 'trap "" TERM; echo "$$"; exec sleep 300' &
    exec cat >/dev/null ;;
  regrouped) # same session, own group, without the marker
    env -i PATH="$PATH" bash -c 'set -m; sleep 300 & echo "$!"' &
    exec cat >/dev/null ;;
  left) # the leader leaves at once, a member of its group stays
    sh -c 'trap "" TERM; echo "$$"; exec sleep 300' &
    exit 0 ;;
  brief) # the leader leaves, a member follows a moment later by itself
    sh -c 'sleep 0.03; exit 0' &
    cat >/dev/null
    exit 0 ;;
  words) # last words after the end of input
    echo ready
    cat >/dev/null
    echo last-out
    echo last-err >&2
    exit 3 ;;
  flood) # fills stdout and stderr, which nobody reads, before it looks at its input
    head -c 1000000 /dev/zero
    head -c 1000000 /dev/zero >&2
    exec cat >/dev/null ;;
  crash)
    kill -s KILL "$$" ;;
  tree) # everything at once: leader deaf to TERM, member, escaped one, bare one in the same session
    trap '' TERM
    sh -c 'echo "$$"; exec sleep 300' &
    setsid sh -c 'echo "$$"; exec sleep 300' &
    env -i /bin/sh -c 'echo "$$"; exec sleep 300' &
    while :; do sleep 1; done ;;
esac
