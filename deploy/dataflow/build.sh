#!/usr/bin/env bash
# Build and push the image and the flex template's image, and write the template.
#   SDK_DIGEST=sha256:... LAUNCHER_DIGEST=sha256:... deploy/dataflow/build.sh PROJECT [REGION] [TAG]
# It writes gs://PROJECT-shoal-jobs/templates/shoal-TAG.json. A tag is never moved: a new build takes a new tag.
set -euo pipefail

project=${1:?usage: build.sh PROJECT [REGION] [TAG]}
: "${SDK_DIGEST:?give the digest of the image of the Beam SDK: deploy/README.md says how to look it up}"
: "${LAUNCHER_DIGEST:?give the digest of the image of the Dataflow launcher: deploy/README.md says how to look it up}"
for digest in "$SDK_DIGEST" "$LAUNCHER_DIGEST"; do
  [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || { echo "A digest is $digest: sha256: and 64 hexadecimal digits." >&2; exit 2; }
done
region=${2:-europe-west4}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
tag=${3:-$(git rev-parse --short=12 HEAD)}

repository="$region-docker.pkg.dev/$project/shoal"
image="$repository/shoal:$tag"
template_image="$repository/shoal-dataflow:$tag"
template="gs://$project-shoal-jobs/templates/shoal-$tag.json"

gcloud auth configure-docker "$region-docker.pkg.dev" --quiet

# Dataflow's and most Kubernetes nodes are amd64, whatever this machine is.
docker build --platform linux/amd64 --file deploy/image/Dockerfile --tag "$image" \
  --build-arg SDK_DIGEST="$SDK_DIGEST" .
docker push "$image"

docker build --platform linux/amd64 --file deploy/dataflow/Dockerfile --tag "$template_image" \
  --build-arg IMAGE="$image" --build-arg TEMPLATE_IMAGE="$template_image" \
  --build-arg LAUNCHER_DIGEST="$LAUNCHER_DIGEST" .
docker push "$template_image"

gcloud dataflow flex-template build "$template" \
  --project "$project" \
  --image "$template_image" \
  --sdk-language PYTHON \
  --metadata-file deploy/dataflow/metadata.json

echo "Image:    $image"
echo "Template: $template"
