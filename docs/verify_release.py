"""Check a release of lightning_dpg without lightning_dpg: Python 3.11, NumPy and this file.

    python verify_release.py FOLDER

Read it before you trust it. It prints what is wrong and ends with 1, or what is proved and ends with 0. Only
`python -m lightning_dpg verify` can tell whether graphs are those of the tensors, and reads those of the method.
An editor of a release can write new checksums: compare SHA256SUMS with the one that the sender has published.
"""

import html
import json
import math
import re
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np

SUMS, STATEMENT, CARD, PAGE = "SHA256SUMS", "privacy.json", "MODEL_CARD.md", "MODEL_CARD.html"
TENSORS = ("generator.safetensors", "learner.safetensors")
SIGNED = {SUMS, f"{SUMS}.sig", f"{SUMS}.minisig"}  # have no checksum; their own tools check them
WRITTEN = {STATEMENT, CARD, PAGE, *TENSORS, *SIGNED}
DRAWN = re.compile(
    r"synthetic-[0-9]+\.(edges|graphml|npz|parquet)|people-[0-9]+\.csv|transfers-[0-9]+\.(csv|parquet)"
    r"|features\.npz|node_attributes\.(npz|parquet)"
)
POINTS = 2**18  # of the grid of losses


def faults_of_files(folder):
    """Only plain files with the names of a release, each with its checksum: no links, no folders."""
    names = sorted(path.name for path in folder.iterdir())
    if odd := [name for name in names if (p := folder / name).is_symlink() or not p.is_file()]:
        return [f"{name}: no plain file" for name in odd]
    if SUMS not in names:
        return [f"{SUMS}: missing"]
    sums = {line[66:]: line[:64] for line in (folder / SUMS).read_text("utf-8").splitlines()}
    found = [f"{name}: missing" for name in sorted(sums.keys() - {*names})]
    for name in names:
        digest = sha256((folder / name).read_bytes()).hexdigest()
        if name not in WRITTEN and not DRAWN.fullmatch(name):
            found.append(f"{name}: no file of a release")
        elif name not in SIGNED and sums.get(name) != digest:
            found.append(f"{name}: not the file of its checksum")
    return found


def faults_of_statement(content):
    """Yield what is wrong with the statement, and in lines with "ok" what its reads prove."""
    sentence, entries = content["guarantee"], content["entries"]
    private, relations = content["epsilon"] != "inf", [content, *content.get("beside", [])]
    if {entry["relation"] for entry in entries} - {each["relation"] for each in relations}:
        yield "it has reads of a relation of which it states no epsilon"
    for each in relations:
        epsilon, delta = float(each["epsilon"]), float(each["delta"])
        claim = f"({epsilon:.15g}, {delta:.15g})-DP" if private else "none: "
        if claim not in sentence or math.isfinite(epsilon) != private:
            yield f"its guarantee does not say {claim!r}"
        if not private:
            continue
        reads = [entry for entry in entries if entry["relation"] == each["relation"]]
        lower, upper = bounds(reads, delta, epsilon) if entries else (math.inf, math.inf)
        cost = f"{len(reads)} reads of the relation {each['relation']} cost epsilon {lower:.4f} to "
        cost += f"{upper:.4f} at delta {delta:g}; stated is {epsilon:g}"
        is_right = lower - 1e-4 <= epsilon and not lower == upper < epsilon - 2e-4
        yield f"ok: {cost}" if is_right else cost
    condition = content.get("condition")
    said = f"-DP if {condition} (" in sentence if condition else "-DP if " not in sentence
    if not said or bool(content.get("conditional")) != bool(condition):
        yield "its guarantee and its condition differ"
    yield f"ok: guarantee: {sentence}"


def bounds(reads, delta, stated):
    """Epsilon between two bounds, at a delta, of reads that are composed adaptively.

    The privacy loss of two neighboring inputs with the outputs P and Q is L = ln P/Q at an output of P. They
    are (epsilon, delta)-close in this direction if and only if delta >= E[max(0, 1 - exp(epsilon - L))]: the
    expectation is the integral of P - exp(epsilon) Q over the outputs where that is positive, the set that
    tells both apart best. Losses of independent reads add up, because densities multiply; for reads that
    depend on earlier results the worst pair of each read may be taken (Zhu, Dong, Wang, 2022, Theorem 10).

    * Pure reads: no pair of an e-DP read is worse than randomized response, whose loss is e with probability
      exp(e) / (1 + exp(e)) and -e else (Kairouz, Oh, Viswanath, 2015). For delta 0 the sum of the largest
      losses counts, which is the sum of all e.
    * Gaussian noise s on a Poisson sample with the rate q: P = (1 - q) N(0, s^2) + q N(1, s^2), Q = N(0, s^2)
      where a record is removed, and the other way around where one is added. q is 1 without sampling.
    * Reads that fail with probability d add d to delta.

    The function max(0, 1 - exp(epsilon - L)) grows with L. So losses that are rounded up to a grid give a delta
    that is too large, hence an upper bound of epsilon, and losses that are rounded down give a lower bound.
    """
    costs = {}
    for read in reads:
        is_noise, steps = read["mechanism"] == "gaussian", int(read["steps"])
        amount = float(read.get("noise_multiplier" if is_noise else "epsilon", 0))
        rate = float(read.get("sample_rate", 1)) if is_noise else 1.0
        failing = float(read.get("delta", 0))
        if read["mechanism"] not in ("pure", "approximate", "gaussian"):
            return math.inf, math.inf
        if steps < 1 or not amount >= 0 or not 0 < rate <= 1 or not 0 <= failing < 1:
            raise ValueError(f"the read {read.get('key')!r} has amounts that no read has")
        if amount == 0 if is_noise else math.isinf(amount):
            return math.inf, math.inf
        delta -= steps * failing
        costs[is_noise, amount, rate] = costs.get((is_noise, amount, rate), 0) + steps
    noisy = any(is_noise for is_noise, *_ in costs)
    added = math.fsum(key[1] * steps for key, steps in costs.items() if not key[0])
    if not 0 <= stated < math.inf or delta < -1e-15 or (noisy and delta <= 0):
        return math.inf, math.inf
    if not noisy and delta <= 1e-15:
        return added, added
    found, step = {}, 2 * (stated + 6) / POINTS  # larger losses tell as much as infinite ones
    for up in (False, True):
        losses = (compose(costs, step, is_added, up) for is_added in (False, True))
        found[up] = max(epsilon_at(each, step, delta, up) for each in losses)
    return found[False], found[True] if noisy else min(found[True], added)


def normal(x):
    """Distribution function of the standard normal law; math.erfc keeps the digits of its lower tail."""
    return np.array([math.erfc(-each / math.sqrt(2)) / 2 for each in x])


def one_step(is_noise, amount, rate, step, is_added, up):
    """Masses of the loss of one step at the points of the grid, and the mass beyond its upper end."""
    points = step * (np.arange(POINTS) - POINTS // 2)
    if not is_noise:
        masses, beyond = np.zeros(POINTS), 0.0
        for loss in (amount, -amount):
            place = POINTS // 2 + (math.ceil if up else math.floor)(loss / step)
            share = math.exp(min(loss, 0)) / (1 + math.exp(-amount))
            if up and place >= POINTS:
                beyond += share
            elif up or place >= 0:
                masses[min(max(place, 0), POINTS - 1)] += share
        return masses, beyond
    # With a record more, the loss of the output x is ln(1 - q + q exp((2 x - 1) / (2 s^2))), which grows
    # with x. So the loss is at most l where x is at most this place; none is below ln(1 - q).
    losses = -points[::-1] if is_added else points
    with np.errstate(divide="ignore"):
        ratio = np.exp(losses) if rate == 1 else np.maximum(np.expm1(losses) + rate, 0) / rate
        places = amount**2 * np.log(ratio) + 0.5
    below, above = normal(places / amount), normal(-places / amount)
    if not is_added:
        below = (1 - rate) * below + rate * normal((places - 1) / amount)
        above = (1 - rate) * above + rate * normal((1 - places) / amount)
    # Differences of the smaller tails: those of the larger ones would lose all digits.
    between = np.where(places[1:] < 0, np.diff(below), -np.diff(above))
    first, last = below[0], above[-1]
    if is_added:  # the loss is the negative one, of an output without the record
        between, first, last = between[::-1], last, first
    if up:
        return np.append(first, between), last
    return np.append(between, last), 0.0


def add(one, other, up):
    """Sum of two losses. Sums beyond the grid are rounded to its ends, or are infinite, or never occur."""
    size = 2 * POINTS
    sums = np.fft.irfft(np.fft.rfft(one[0], size) * np.fft.rfft(other[0], size), size)
    low, masses, high = np.split(np.maximum(sums, 0), [POINTS // 2, POINTS // 2 + POINTS])
    masses[0 if up else -1] += low.sum() if up else high.sum()
    return masses, (one[1] + other[1] + high.sum()) if up else 0.0


def compose(costs, step, is_added, up):
    """Losses of all steps together, by repeated squaring, and the error of the transforms."""
    total, count = None, 0
    for (is_noise, amount, rate), steps in costs.items():
        count += steps
        power = one_step(is_noise, amount, rate, step, is_added, up)
        while steps:
            if steps % 2:
                total = power if total is None else add(total, power, up)
            steps //= 2
            power = add(power, power, up) if steps else power
    # Sums of masses are off by some units in the last place: T-fold after T steps, and the root of N times.
    return *total, 2.0**-49 * count * math.sqrt(POINTS) * (count > 1)


def epsilon_at(losses, step, delta, up):
    """Smallest epsilon whose delta is small enough, to six digits, in the direction of the bound."""
    masses, beyond, error = losses
    points = step * (np.arange(POINTS) - POINTS // 2)

    def holds(epsilon):
        found = masses @ np.maximum(-np.expm1(np.minimum(epsilon - points, 0)), 0)
        return found + beyond + (error if up else -error) <= delta

    low, high = 0.0, float(points[-1])
    if not holds(high):
        return math.inf if up else high
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high if up else low


def faults_of_tensors(path, content):
    """The header of the tensors is JSON: it holds the statement again, method and settings."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    recipe = json.loads(header.pop("__metadata__")["lightning_dpg"])
    places = sorted(each["data_offsets"] for each in header.values())
    if [0, *(stop for _, stop in places)] != [*(start for start, _ in places), len(data) - end]:
        yield "it holds more than its tensors, which lie one behind the other"
    about, method = content["administrative"], recipe["method"]
    # Topics of the card are mappings, and nothing in the statement is.
    if recipe["privacy"] != {name: of for name, of in content.items() if type(of) is not dict}:
        yield f"its statement is not that of {STATEMENT}"
    if method != about["method"] or method.rpartition(".")[2] != content["method"]:
        yield f"its method is {method}"
    if recipe["hparams"] != about["settings"]:
        yield "its settings are not those of the card"


def faults_of_cards(folder, content):
    """Both cards have to say the guarantee and all assumptions."""
    card = re.sub(r"\\(.)", r"\1", html.unescape((folder / CARD).read_text("utf-8"))).splitlines()
    page = html.unescape(re.sub("<[^>]*>", "", (folder / PAGE).read_text("utf-8")))
    marks = {content["guarantee"]: "Guarantee:"} | dict.fromkeys(content["assumptions"], "-")
    for text, mark in marks.items():
        if f"{mark} {text}" not in card or " ".join(text.split()) not in " ".join(page.split()):
            yield f"a card does not say: {text}"


def check(folder):
    """Return the faults of a release, and what is right in it."""
    if found := faults_of_files(folder):
        return found, []
    try:
        content = json.loads((folder / STATEMENT).read_text("utf-8"))
        said = list(faults_of_statement(content))
        right = [line for line in said if line.startswith("ok: ")]
        found = [f"{STATEMENT}: {line}" for line in said if line not in right]
        (path,) = (folder / name for name in TENSORS if (folder / name).is_file())
        found += [f"{path.name}: {line}" for line in faults_of_tensors(path, content)]
        found += faults_of_cards(folder, content)
    except (OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        return [f"{STATEMENT}, its tensors or its card: {type(error).__name__}: {error}"], []
    return found, right


if __name__ == "__main__":
    faults, proved = check(Path(sys.argv[1]))
    print("\n".join(faults or proved))
    sys.exit(bool(faults))
