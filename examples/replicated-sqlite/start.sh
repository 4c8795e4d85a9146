#!/bin/sh
# What each machine runs: a node of the cluster and the application, tied together. /data is the volume.
set -eu
: "${HANGAR_URL:?where the platform is reached}" "${SVC_APP_NAME:?}" "${SVC_MACHINE_ID:?}" "${HANGAR_DB_KEY:?a secret of the app}"
here=$(dirname "$0")
exec node "$here/supervisor.mjs" \
  hangar db node --dir /data --listen '[::]:20202' \
  --advertise "http://$SVC_MACHINE_ID.vm.$SVC_APP_NAME.internal:20202" \
  --lease "platform:$HANGAR_URL/$SVC_APP_NAME" \
  -- node "$here/app.mjs"
