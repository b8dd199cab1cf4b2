#!/usr/bin/env bash
# Run a job on Dataflow every week: deploy the workflow beside this file, and have Cloud Scheduler call it.
#   deploy/schedules/google/schedule.sh PROJECT NAME TEMPLATE [REGION] [HOUR] [WEEKDAY]
# The job file is gs://PROJECT-shoal-jobs/NAME.yaml, and runs are named NAME-DATE, by the day before. HOUR is UTC, from
# 0 to 23, and WEEKDAY cron's: 1 is Monday, * every day. Calling it again changes what is there.
set -euo pipefail

project=${1:?usage: schedule.sh PROJECT NAME TEMPLATE [REGION] [HOUR] [WEEKDAY]}
name=${2:?NAME is missing, for example airports}
template=${3:?TEMPLATE is missing: the last line of deploy/dataflow/build.sh}
region=${4:-europe-west4}
hour=${5:-3}
weekday=${6:-1}

[[ $name =~ ^[a-z][a-z0-9-]{0,40}$ ]] || { echo "NAME is $name: lower case letters, digits and hyphens." >&2; exit 2; }
[[ $hour =~ ^([0-9]|1[0-9]|2[0-3])$ ]] || { echo "HOUR is $hour: a number from 0 to 23." >&2; exit 2; }
[[ $weekday =~ ^([0-6]|\*)$ ]] || { echo "WEEKDAY is $weekday: a number from 0 to 6, or *." >&2; exit 2; }

account() { echo "$1@$project.iam.gserviceaccount.com"; }

gcloud workflows deploy shoal-scheduled-run --quiet \
  --project "$project" --location "$region" \
  --source "$(dirname "${BASH_SOURCE[0]}")/workflow.yaml" \
  --service-account "$(account shoal-launch)" \
  --call-log-level log-errors-only

# The argument of the workflow, and within the body a string that holds JSON. The same hour is in argument and schedule.
argument=$(printf '{"name": "%s", "hour": %d, "job_file": "%s", "template": "%s", "region": "%s", "subnetwork": "%s", "run_account": "%s"}' \
  "$name" "$hour" "gs://$project-shoal-jobs/$name.yaml" "$template" "$region" \
  "regions/$region/subnetworks/shoal" "$(account shoal-run)")
body=$(printf '{"argument": "%s"}' "${argument//\"/\\\"}")

verb=create
headers=--headers
if gcloud scheduler jobs describe "shoal-$name" --project "$project" --location "$region" > /dev/null 2>&1; then
  verb=update
  headers=--update-headers
fi
# It tries for an hour at most: within the day whose date the workflow finds.
gcloud scheduler jobs "$verb" http "shoal-$name" \
  --project "$project" --location "$region" \
  --schedule "0 $hour * * $weekday" --time-zone Etc/UTC \
  --uri "https://workflowexecutions.googleapis.com/v1/projects/$project/locations/$region/workflows/shoal-scheduled-run/executions" \
  --http-method POST "$headers" Content-Type=application/json --message-body "$body" \
  --oauth-service-account-email "$(account shoal-schedule)" \
  --max-retry-attempts 5 --min-backoff 60s --max-backoff 600s --max-retry-duration 3600s
