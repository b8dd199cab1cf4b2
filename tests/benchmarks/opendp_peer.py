"""OpenDP's Polars API as a peer: `dp.len()` and `dp.sum` by group, and the mean as their quotient.

It is asked like PipelineDP; see `tests.benchmarks.pipelinedp_peer`. `COUNT` and `SUM` are its measures. A
mean of its own (`dp.mean`) would spend on a second count and a second sum, so the quotient is kinder to it.
Laplace noise spends epsilon and delta, of which delta pays for private keys alone. Gaussian noise spends the
largest rho that OpenDP converts into epsilon at delta, or where keys are private at half of delta.

Contributions of a unit are bounded here, by a uniform choice of groups and of rows in them, and OpenDP is
told of the bounds (`Bound`). Its own `truncate_num_groups` of OpenDP 0.16.0 fails with `keep="sample"` and
the Polars that it asks for (1.36.1), and `keep="first"` keeps one group less, always the first ones in the
order of keys.
"""

from tests.benchmarks.peer_process import Peer

_SCRIPT = """
import json, math, random, sys, time, warnings
import opendp.prelude as dp
import polars as pl

warnings.simplefilter("ignore")
dp.enable_features("contrib", "honest-but-curious")
folder = sys.argv[1]
asked = json.load(open(folder + "/asked.json"))
assert asked["metrics"] == ["COUNT", "SUM", "MEAN"]
rows, groups, public = asked["rows"], asked["groups"], asked["public"]
data = pl.read_parquet(folder + "/rows.parquet")
size, largest = len(data), len(data) if public is None else len(public)

def epsilon_of(rho, delta):
    noise = dp.m.make_gaussian(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1 / math.sqrt(2 * rho))
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(noise), delta).map(1.0)[0]

if asked["noise"] == "laplace":
    loss = dp.loss_of(epsilon=asked["epsilon"], delta=asked["delta"] if public is None else None)
else:
    part = asked["delta"] / 2 if public is None else asked["delta"]
    rho = dp.binary_search(lambda rho: epsilon_of(rho, part) <= asked["epsilon"], bounds=(1e-6, 1.0))
    loss = dp.loss_of(rho=rho, delta=part if public is None else None)

def bounded():
    found = data.lazy()
    if asked["units"]:
        found = found.filter(pl.int_range(pl.len()).shuffle().over("unit", "key") < rows)
        order = pl.struct("key", "unit").hash(seed=random.getrandbits(60))
        found = found.filter(order.rank("dense").over("unit") <= groups)
    return found.select("key", "value")

def aggregate():
    unit = dp.unit_of(contributions=1)
    if asked["units"]:
        unit = dp.unit_of(contributions=[dp.polars.Bound(by=["key"], per_group=rows, num_groups=groups)])
    context = dp.Context.compositor(
        data=bounded(), privacy_unit=unit, privacy_loss=loss, split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=size, max_groups=largest)])
    value = pl.col("value").fill_null(0).dp.sum((int(asked["low"]), int(asked["high"])))
    query = context.query().group_by("key").agg(dp.len(), value)
    if public is not None:
        query = query.with_keys(pl.LazyFrame({"key": public}))
    found = query.release().collect()
    return {key: [n, s, mean(s, n)] for key, n, s in found.select("key", "len", "value").rows()}

def mean(total, count):
    return min(max(total / max(count, 1), asked["low"]), asked["high"])

runs = []
while len(runs) < asked["runs"] and (
        len(runs) < asked["least"] or sum(r["seconds"] for r in runs) < asked["seconds"]):
    started = time.process_time()
    found = aggregate()
    runs.append({"seconds": time.process_time() - started, "groups": found})
json.dump(runs, open(folder + "/runs.json", "w"))
"""

OPENDP = Peer("opendp", ("opendp[polars]==0.16.0", "pyarrow"), _SCRIPT)
