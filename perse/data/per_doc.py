"""Per-DOC: annotation tables of story plots compared in pairs -> a data set of annotators and five aspects (PerSE, 4.1, A.2).

The stories were written by systems, so nothing is anonymized. Everything after the reading is `perse data pairwise`.
"""

from __future__ import annotations

from perse.data.build import Material, Summary, pairwise_set
from perse.data.folder import check_target
from perse.data.options import PairwiseOptions
from perse.data.sources.doc import read_doc
from perse.data.sources.faults import Faults


def build_per_doc(options: PairwiseOptions) -> Summary:
    """Builds the data set of the annotation table `options.pairs`, long or wide. Raises as `build_pairwise`."""
    check_target(options.out, overwrite=options.overwrite)
    faults = Faults(options.on_error)
    read = read_doc(options.pairs, faults, columns=options.columns, limit=options.limit)
    return pairwise_set(Material(records=read, inputs={"annotations": options.pairs}, faults=faults), options)
