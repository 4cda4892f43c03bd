"""`perse drpe roles`: who would read each article, and who of them votes."""

from __future__ import annotations

from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.drpe import DocumentsFile, FirstDocuments, Thinning
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Loading
from perse.commands.options.medium import Medium
from perse.commands.showing import show_result
from perse.commands.terminal import err, say
from perse.progress import shown_on


@grouped
def roles(
    *,
    documents: DocumentsFile,
    writer: Annotated[
        str,
        typer.Option(help="The model that invents roles, named as a judge is; the paper's was GPT-3 (text-davinci-003)."),
    ],
    out: options.Out,
    limit: FirstDocuments = None,
    each: Annotated[int, typer.Option(min=1, help="Types of readers that each of the two prompts asks for.")] = 4,
    thinning: Thinning,
    figure: Annotated[
        bool, typer.Option("--figure", help="Draw the roles' map into OUT/map, as PNG, SVG and the numbers as CSV.")
    ] = False,
    temperature: options.Temperature = 0.0,
    max_new_tokens: options.MaxNewTokens = 512,
    tries: options.Tries = 3,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    skip_failed: Annotated[bool, typer.Option("--skip-failed", help="Leave out roles that the engine failed at.")] = False,
    loading: Loading,
    medium: Medium,
    everything: options.Everything = False,
) -> None:
    """Invent readers of each article, and show which of them clustering keeps; the same command continues after a stop.

    Example:  perse drpe roles summeval.jsonl.gz --writer smollm2-135m --limit 2 --embedding-model MINILM --out runs/roles

    Another number of roles, without asking again:  perse drpe roles summeval.jsonl.gz --writer MODEL --k 2 --out runs/roles --all

    As the first version:  perse drpe roles summeval.jsonl.gz --writer MODEL --each 5 --clusterer dbscan --out runs/first
    """
    from perse.drawing.figure import save_figure
    from perse.drpe.clustering import embedding
    from perse.drpe.diversity import diversity, thin
    from perse.drpe.documents import read_documents
    from perse.drpe.inventing import Inventing
    from perse.drpe.reporting.roles_map import roles_map
    from perse.drpe.roles_folder import invent_roles, read_folder
    from perse.drpe.telling import roles_result
    from perse.writing.writer import Writer

    clustering = thinning.clustering()
    settings = Inventing(
        each=each, temperature=temperature, max_new_tokens=max_new_tokens, tries=tries, seed=seed, skip_failed=skip_failed
    )
    given = read_documents(documents, limit=limit)
    embed = embedding(clustering.model) if figure or clustering.method != "none" else None  # before a model is asked
    model = Writer(loading.load(writer, writes=True))
    with shown_on(err) as on_part:
        invent_roles(model, given, out, settings=settings, on_progress=on_part)
    invented = list(read_folder(out).invented.values())
    as_they_are = {one.id for one in given.documents if not one.summarized}
    found = thin(invented, clustering, embed=embed, as_they_are=as_they_are)
    if figure and embed:
        save_figure(roles_map(found, embed), out / "map")
    say(f"roles: {out}")
    show_result(
        roles_result(invented, found, diversity(found, resamples=resamples, seed=seed), clustering),
        medium,
        everything=everything,
    )
