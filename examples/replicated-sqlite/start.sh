#!/bin/sh
# What each machine runs: a node of the cluster and the application, tied together. /data is the volume.
set -eu
here=$(dirname "$0")
exec node "$here/supervisor.mjs" hangar db node --dir /data --machine -- node "$here/app.mjs"
