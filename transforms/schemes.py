"""Kinds of storage, as the scheme of a URL names them."""

GCS, S3, AZURE = "gs://", "s3://", "az://"

LOCAL = ""

EXTRAS = {GCS: "gcp", S3: "s3", AZURE: "azure"}
"""The extra of the distribution that each kind needs."""

KNOWN = f"{GCS}..., {S3}..., {AZURE}..."


def split_scheme(path: str) -> tuple[str, str]:
    """Return the scheme of a path, and the rest.

    A local path has the scheme `LOCAL`. A scheme that is not in `EXTRAS` is not supported.
    """
    scheme, mark, rest = path.partition("://")
    return (scheme + mark, rest) if mark else (LOCAL, path)
