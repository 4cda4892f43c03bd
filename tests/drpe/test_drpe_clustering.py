"""Which roles are kept: small vectors in a plane, of which the clusters are plain to see."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from drpe_builders import role

from perse.drpe.clustering import (
    Clustering,
    Vectors,
    kept_roles,
    mean_distance,
    nearest_to_centres,
    nearest_to_means,
    thinned,
)
from perse.drpe.roles import STATIC, Role
from perse.errors import BadInput


def at(*degrees: float) -> Vectors:
    """Vectors of length 1 in these directions."""
    angles = np.radians(np.array(degrees, dtype=np.float64))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


class Placed:
    """Embeds "type: description" by the type: its number of degrees; notes what it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return at(*(float(text.partition(":")[0]) for text in texts))


def roles(*degrees: float) -> list[Role]:
    return [role(f"{one:g}") for one in degrees]


def kinds(found: Sequence[Role]) -> list[str]:
    return [one.type for one in found]


def test_of_each_cluster_the_role_nearest_to_the_centre_is_kept() -> None:
    # {0, 4, 10}: the centre lies at about 4.6 degrees, nearest 4; {90, 97, 100}: at about 95.7, nearest 97
    assert nearest_to_centres(at(0, 4, 10, 90, 97, 100), 2) == [1, 4]
    assert kinds(kept_roles(roles(100, 0, 97, 4, 90, 10), Clustering(k=2), embed=Placed())) == ["97", "4"]


def test_of_two_that_are_equally_near_the_earlier_one_is_kept() -> None:
    # the centre of two points lies in the middle of them, whatever they are
    for order, kept in (((0, 8, 120, 200), [0, 2, 3]), ((200, 8, 0, 120), [0, 1, 3])):
        assert nearest_to_centres(at(*order), 3) == kept


def test_what_is_embedded_is_the_type_a_colon_and_the_description() -> None:
    embed = Placed()
    kept_roles([role("0", "One."), role("5", "Two."), role("90", "Three.")], Clustering(k=2), embed=embed)
    assert embed.texts == ["0: One.", "5: Two.", "90: Three."]


def test_static_and_manual_roles_stay_and_are_not_counted_in_k() -> None:
    found = kept_roles([*STATIC, *roles(0, 5, 90)], Clustering(k=2), embed=Placed())
    assert kinds(found) == ["General Public", "Critic", "News Author", "0", "90"]


def test_with_static_roles_among_the_clustered_one_of_them_can_go() -> None:
    given = [role("0", source="static"), role("90", source="static"), *roles(2, 4, 180)]
    # k = 1 and two static ones: three clusters, {0, 2, 4}, {90} and {180}; the centre of the first is at 2
    assert kinds(kept_roles(given, Clustering(k=1, among="all"), embed=Placed())) == ["90", "2", "180"]
    assert kinds(kept_roles(given, Clustering(k=1), embed=Placed()))[:2] == ["0", "90"]


def test_no_dynamic_role_is_kept_of_k_0_and_nothing_is_embedded() -> None:
    for among in ("dynamic", "all"):
        embed = Placed()
        assert kept_roles([*STATIC, *roles(0, 90)], Clustering(k=0, among=among), embed=embed) == STATIC  # type: ignore[arg-type]
        assert not embed.texts


def test_where_there_are_fewer_roles_than_k_all_are_kept_and_it_is_said() -> None:
    found = thinned(roles(0, 1, 90), Clustering(k=4), embed=Placed())
    assert kinds(found.kept) == ["0", "1", "90"] and found.special == "few"
    assert thinned(roles(0, 1, 90, 91), Clustering(k=4), embed=Placed()).special == ""


def test_roles_that_are_all_alike_are_one_role() -> None:
    found = thinned([role("7") for _ in range(5)], Clustering(k=4), embed=Placed())
    assert len(found.kept) == 1 and found.special == "alike"
    assert len(kept_roles([role("7") for _ in range(5)], Clustering(method="dbscan"), embed=Placed())) == 1


def test_without_clustering_all_are_kept() -> None:
    embed = Placed()
    assert kinds(kept_roles(roles(0, 1, 2, 3, 4, 5), Clustering(method="none"), embed=embed)) == ["0", "1", "2", "3", "4", "5"]
    assert not embed.texts


def test_dbscan_keeps_the_role_nearest_to_each_clusters_mean_and_every_one_that_is_like_no_other() -> None:
    # cosine distances: 1 - cos 20 = 0.06, 1 - cos 40 = 0.23, 1 - cos 60 = 0.5. With eps 0.1 neighbours are up to 25 degrees apart:
    # {0, 20, 40} hang together by 20, which is also nearest to their mean; {150, 160}: a tie, the first; 270 is alone
    assert nearest_to_means(at(0, 20, 40, 150, 160, 270), eps=0.1, min_samples=2) == [1, 3, 5]
    assert nearest_to_means(at(270, 160, 40, 150, 20, 0), eps=0.1, min_samples=2) == [0, 1, 4]
    # of three neighbours only 20 is the middle of a cluster; 150 and 160 are noise then
    assert nearest_to_means(at(0, 20, 40, 150, 160, 270), eps=0.1, min_samples=3) == [1, 3, 4, 5]


def test_where_dbscan_finds_only_noise_all_are_kept_and_it_is_said() -> None:
    found = thinned(roles(0, 90, 180), Clustering(method="dbscan", eps=0.1), embed=Placed())
    assert kinds(found.kept) == ["0", "90", "180"] and found.special == "noise"
    assert thinned(roles(0, 5, 180), Clustering(method="dbscan", eps=0.1), embed=Placed()).special == ""


@pytest.mark.parametrize("method", ["kmeans", "dbscan", "none"])
def test_no_roles_and_one_role_are_themselves(method: str) -> None:
    for given in (roles(), roles(10)):
        assert kept_roles(given, Clustering(method=method, k=4), embed=Placed()) == tuple(given)  # type: ignore[arg-type]
    assert kept_roles(STATIC, Clustering(method=method), embed=Placed()) == STATIC  # type: ignore[arg-type]


def test_the_mean_distance_is_that_of_all_pairs() -> None:
    # pairs of 0, 60, 90 degrees: 1 - 0.5, 1 - 0, 1 - cos 30 = 0.133975
    assert mean_distance(at(0, 60, 90)) == pytest.approx((0.5 + 1.0 + 0.1339746) / 3)
    assert mean_distance(at(0)) is None and mean_distance(np.zeros((0, 2))) is None


@pytest.mark.parametrize(
    "wrong", [{"k": -1}, {"eps": 0.0}, {"eps": 2.5}, {"min_samples": 0}, {"method": "ward"}, {"among": "some"}]
)
def test_a_clustering_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadInput, match=f"{next(iter(wrong))} is .*expected"):
        Clustering(**wrong)  # type: ignore[arg-type]
