"""Amazon's reviews and product file -> a data set of reviews: what is judged is the product's title and description."""

from __future__ import annotations

from perse.data.build import Material, Summary, pointwise_set
from perse.data.folder import check_target
from perse.data.options import PointwiseOptions
from perse.data.sources.amazon import amazon_reviews_as_records
from perse.data.sources.faults import Faults
from perse.errors import BadInput


def build_amazon(options: PointwiseOptions) -> Summary:
    """Builds the data set of `options.reviews` and the products in `options.items`. Raises as `build_pointwise`."""
    if options.items is None:
        raise BadInput(f"{options.reviews}: the reviews do not say what the products are; give the category's meta file")
    check_target(options.out, overwrite=options.overwrite)
    faults = Faults(options.on_error)
    records = amazon_reviews_as_records(options.reviews, options.items, faults, columns=options.columns, limit=options.limit)
    inputs = {"reviews": options.reviews, "meta": options.items}
    return pointwise_set(Material(records=records, inputs=inputs, faults=faults), options)
