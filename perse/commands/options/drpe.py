"""What several `perse drpe` commands take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from perse.drpe.clustering import Among, Clustering, Method
from perse.errors import BadInput
from perse.models.embeddings import EMBEDDING_MODEL

DocumentsFile = Annotated[
    Path,
    typer.Argument(
        metavar="DOCS",
        help="Documents with references and candidates, a JSON object a line, as SummEval's; .gz too.",
        show_default=False,
    ),
]
FirstDocuments = Annotated[
    int | None, typer.Option("--limit", min=1, help="Take the file's first so many documents.", show_default="all")
]


EmbeddingModel = Annotated[str, typer.Option(help="Embeds roles: a Sentence-BERT's folder or hub name.")]


@dataclass(frozen=True, kw_only=True)
class Thinning:
    """Which of the invented roles vote."""

    clusterer: Annotated[
        Method, typer.Option(help="kmeans: the later version of the paper; dbscan: the first one; none: every role votes.")
    ] = "kmeans"
    k: Annotated[
        int | None,
        typer.Option("--k", min=0, help="kmeans: how many invented roles are kept of a document.", show_default="4"),
    ] = None
    eps: Annotated[
        float | None,
        typer.Option(min=0.01, max=2.0, help="dbscan: roles are alike up to this cosine distance.", show_default="0.5"),
    ] = None
    min_samples: Annotated[
        int | None,
        typer.Option(min=1, help="dbscan: roles that are alike make a cluster from this number on.", show_default="2"),
    ] = None
    among: Annotated[Among, typer.Option(help="Cluster invented roles alone, or all together with the static ones.")] = (
        "dynamic"
    )
    embedding_model: EmbeddingModel = EMBEDDING_MODEL

    def clustering(self) -> Clustering:
        """Raises:
        BadInput: an option of another way to cluster.
        """
        own = {"kmeans": ("k",), "dbscan": ("eps", "min_samples"), "none": ()}[self.clusterer]
        given = {name: getattr(self, name) for name in ("k", "eps", "min_samples") if getattr(self, name) is not None}
        if foreign := next((name for name in given if name not in own), None):
            wanted = "kmeans" if foreign == "k" else "dbscan"
            raise BadInput(f"--{foreign.replace('_', '-')} is of --clusterer {wanted}, and --clusterer is {self.clusterer}")
        return Clustering(method=self.clusterer, among=self.among, model=self.embedding_model, **given)
