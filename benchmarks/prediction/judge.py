r"""Judge the prediction on all measurements: print one table, in Markdown, and what is predicted worst.

    python benchmarks/prediction/judge.py --measured FOLDER --timm FOLDER --counts FOLDER --traces FOLDER \
        [--model-counts FOLDER] [--only products attention ...]

A line is a card in one table of measurements. First the errors |predicted / measured - 1| by numbers that were fitted
without the card, the median of predicted / measured, and the part of times inside the interval of 80%. That interval is
"others": what holds 80% of measured / predicted of the other cards of the table, each left out in turn; or "shipped":
of whole models, whose interval is the sum of their ops'. Then the roofline times the one number that suits the very
line best, by its median error. Last the errors and intervals of the numbers as they are shipped. Where the first
columns are empty, nothing was fitted to the table. Launches of the host and conversions that a table holds are added as
its script says.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import attention
import collectives
import fit
import judgement
import numpy as np
import products
import streams
import traces
import vector_products
import whole_models
from judgement import Line


def parts(arguments: argparse.Namespace) -> dict[str, Callable[[], list[Line]]]:
    """Return what gives the lines of each part."""
    file = json.loads(judgement.DATA.read_text())
    of = arguments
    return {
        "products": lambda: [*products.judged(of.measured, file)],
        "vector_products": lambda: [*vector_products.judged(of.measured, file)],
        "attention": lambda: [*attention.judged(of.measured, file)],
        "streams": lambda: [*streams.judged(of.measured, file)],
        "collectives": lambda: [*collectives.judged(of.measured, file)],
        "whole_models": lambda: [*whole_models.judged(of.measured, file, of.model_counts)],
        "traces": lambda: [*traces.judged(of.traces, file)],
        "timm": lambda: [*fit.judged(of.timm, file, of.counts)],
    }


def lines_of(part: str, arguments: argparse.Namespace) -> list[Line]:
    """Return the lines of one part."""
    return parts(arguments)[part]()


def worst(lines: Iterable[Line], most: int = 10) -> None:
    """Print the kinds of times whose median of predicted / measured is the farthest from 1."""
    found = []
    for line in lines:
        ratios: dict[str, list[float]] = defaultdict(list)
        for kind, ratio in zip(line.kinds, line.unseen / line.measured, strict=True):
            ratios[kind].append(ratio)
        found += [
            (float(np.median(of)), f"{line.table}, {kind}".rstrip(", "), line.card, len(of))
            for kind, of in ratios.items()
            if len(of) >= judgement.FEWEST
        ]
    print("\n| predicted worst | card | times | predicted / measured |\n|---|---|---|---|")
    for ratio, kind, card, times in sorted(found, key=lambda one: -abs(np.log(one[0])))[:most]:
        print(f"| {kind} | {card} | {times} | {ratio:.2f} |")


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, help="the folder that holds aiconfigurator/ and neusight/")
    parser.add_argument("--timm", type=Path, help="the folder with timm's tables")
    parser.add_argument("--counts", type=Path, default=Path("build/timm-counts"), help="counts of timm's models")
    parser.add_argument("--model-counts", type=Path, default=Path("build/model-counts"), help="of language models")
    parser.add_argument("--traces", type=Path, help="the folder that holds tracelens/h100")
    parser.add_argument("--only", nargs="+", metavar="PART", help="names of scripts; timm (default: all given)")
    arguments = parser.parse_args(given)
    folders = {"timm": arguments.timm, "traces": arguments.traces}
    known = [part for part in parts(arguments) if folders.get(part, arguments.measured)]
    chosen = [part for part in known if not arguments.only or part in arguments.only]
    if not chosen:
        parser.error(f"nothing to judge: the folders that are given suffice for {', '.join(known) or 'nothing'}")
    print(judgement.HEADER)
    found = []
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with multiprocessing.get_context("spawn").Pool() as pool:
        for lines in pool.imap(partial(lines_of, arguments=arguments), chosen):
            for line in lines:
                print(judgement.row_of(line, lines), flush=True)
            found += lines
    worst(found)


if __name__ == "__main__":
    main()
