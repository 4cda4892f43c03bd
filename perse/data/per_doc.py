"""Per-DOC: annotation tables of story plots compared in pairs -> a data set of annotators and five aspects (PerSE, 4.1, A.2).

The stories were written by systems, so nothing is anonymized. Everything after the reading is `perse data pairwise`.
"""

from __future__ import annotations

from perse.data.build import Material, Summary, pairwise_set
from perse.data.dataset.folder import DATA_SET
from perse.data.options import PairwiseOptions
from perse.data.sources.doc import read_doc
from perse.data.sources.faults import Faults
from perse.files.replacing import claimed


def build_per_doc(options: PairwiseOptions) -> Summary:
    """Builds the data set of the annotation table `options.pairs`, long or wide. Raises as `build_pairwise`."""
    faults = Faults(options.on_error)
    inputs = {"annotations": options.pairs}
    with claimed(options.out, DATA_SET, overwrite=options.overwrite, inputs=inputs.values()) as place:
        read = read_doc(options.pairs, faults, columns=options.columns, limit=options.limit)
        return pairwise_set(Material(records=read, inputs=inputs, faults=faults), options, place)
