#!/bin/sh
# Runs the whole system in one container: stores, stand-in or providers, worker, scheduler and API, with all data in one
# volume. `demo` (the default) or `live`; each has a folder of its own in the volume, so simulated and real data never mix.
set -eu
mode="${1:-demo}"
case "$mode" in
  demo | live) ;;
  *)
    echo "expected demo or live, got \"$mode\"" >&2
    exit 2
    ;;
esac
volume="${DATA_DIR:-/data}"
if ! mkdir -p "$volume/$mode" || ! [ -w "$volume/$mode" ]; then
  echo "$volume: expected a volume that the user $(id -u) can write" >&2
  exit 1
fi
export DATA_DIR="$volume/$mode"
# The published port of a container does not reach 127.0.0.1.
export API_HOST="${API_HOST:-0.0.0.0}"
cd "$(dirname "$0")/.."
# As this process, so that the container's stop signal reaches the supervisor.
exec node tools/stack.js "$mode"
