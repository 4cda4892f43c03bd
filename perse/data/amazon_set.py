"""Amazon's reviews and product file -> a data set of reviews: what is judged is the product's title and description."""

from __future__ import annotations

from perse.data.build import Material, Summary, pointwise_set
from perse.data.dataset.folder import DATA_SET
from perse.data.options import PointwiseOptions
from perse.data.sources.amazon import amazon_reviews_as_records
from perse.data.sources.faults import Faults
from perse.errors import BadInput
from perse.files.replacing import claimed


def build_amazon(options: PointwiseOptions) -> Summary:
    """Builds the data set of `options.reviews` and the products in `options.items`. Raises as `build_pointwise`."""
    if options.items is None:
        raise BadInput(f"{options.reviews}: the reviews do not say what the products are; give the category's meta file")
    faults = Faults(options.on_error)
    inputs = {"reviews": options.reviews, "meta": options.items}
    with claimed(options.out, DATA_SET, overwrite=options.overwrite, inputs=inputs.values()) as place:
        records = amazon_reviews_as_records(
            options.reviews, options.items, faults, columns=options.columns, limit=options.limit
        )
        return pointwise_set(Material(records=records, inputs=inputs, faults=faults), options, place)
