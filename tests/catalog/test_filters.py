"""The shared filter: every name is a column, unknown ones are errors with a guess, and each narrows the answer."""

import pytest

from catalog.errors import ConfigurationError, UnknownName
from catalog.filters import NAMES, build_filter, count_range
from catalog.home import Home
from catalog.queries import OFFER_COLUMNS, offers
from catalog.reader import reading


def found(home, **filters):
    with reading(Home(home)) as catalog:
        return offers(catalog, build_filter(filters))


def test_every_filter_is_accepted_by_the_views(recorded_home):
    samples = {
        "gpu": "h100", "vendor": "nvidia", "form_factor": "sxm", "memory_type": "hbm3", "supports": "fp8",
        "gpu_interconnect": "nvlink", "rdma": "true", "gpu_count": "1..8", "purchase_option": "spot",
        "provider": "scaleway", "via": "x", "region": "fr-par-2", "country": "fr", "tenancy": "vm", "available": "true",
        "freshness": "expired", "cpu_arch": "x86_64",
    }  # fmt: skip
    for name in NAMES:
        value = samples.get(name, "1000")
        everything = found(recorded_home)
        assert len(found(recorded_home, **{name: value})) <= len(everything)


def test_gpu_family_finds_its_products_and_ambiguous_rows(recorded_home):
    rows = found(recorded_home, gpu="h100")
    assert {r["gpu"] for r in rows} >= {"h100-pcie-80gb", "h100-sxm-80gb"}
    assert all(r["gpu"].startswith("h100") for r in rows)


def test_bounds_hold(recorded_home):
    for r in found(recorded_home, min_gpu_memory_gb=80, max_price_usd_gpu_hour="5", gpu_count="2..8"):
        assert r["gpu_memory_gb"] >= 80
        assert r["price_usd_gpu_hour"] <= 5
        assert 2 <= r["gpu_count"] <= 8


def test_country_leaves_unknown_countries_out(recorded_home):
    rows = found(recorded_home, country="FR")
    assert rows
    assert {r["country"] for r in rows} == {"FR"}


def test_sorted_cheapest_first_and_unpriced_last(recorded_home):
    prices = [r["price_usd_gpu_hour"] for r in found(recorded_home)]
    known = [p for p in prices if p is not None]
    assert known == sorted(known)
    assert all(p is None for p in prices[len(known) :])


def test_unknown_names_are_errors_with_a_guess(recorded_home):
    with pytest.raises(UnknownName, match="did you mean 'purchase_option'"):
        build_filter({"purchase_options": "spot"})
    with pytest.raises(UnknownName, match="did you mean 'on_demand'"):
        build_filter({"purchase_option": "ondemand"})
    with pytest.raises(UnknownName, match="h100"):
        build_filter({"gpu": "h1000"})
    with pytest.raises(UnknownName, match="price_usd_hour"), reading(Home(recorded_home)) as catalog:
        offers(catalog, sort=["price_usd_hours"])


@pytest.mark.parametrize(
    ("name", "value"),
    [("gpu_count", "8..1"), ("gpu_count", "x"), ("gpu_count", "0"), ("min_gpu_memory_gb", "many"), ("rdma", "maybe"),
     ("max_price_usd_hour", "nan"), ("country", "India"), ("max_commitment_days", "-1"), ("gpu_count", "-1"),
     ("max_commitment_days", "1.5"), ("vendor", "nvidia2"), ("memory_type", "HBM9")],
)  # fmt: skip
def test_bad_values_name_the_value(name, value):
    with pytest.raises(ConfigurationError, match=value if value != "nan" else "finite"):
        build_filter({name: value})


@pytest.mark.parametrize("name", ["gpu", "provider", "country"])
def test_an_empty_value_is_not_no_filter(name):
    with pytest.raises(ConfigurationError, match=f"{name} is empty"):
        build_filter({name: ["", " , "]})


def test_count_ranges():
    assert count_range("2-4") == (2, 4)
    assert count_range("8") == (8, 8)
    assert count_range("1..4") == (1, 4)
    assert count_range("..4") == (1, 4)
    assert count_range("2..")[0] == 2


def test_columns_of_the_query_exist(recorded_home):
    assert set(OFFER_COLUMNS) <= set(found(recorded_home)[0])
