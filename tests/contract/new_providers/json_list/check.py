"""Acme: a call for a price."""


def test_a_price_on_request_is_not_zero(parse, api_with):
    result = parse(api_with(lambda data: data["offers"][1].update(usd_per_hour=0)))
    assert [r.reason for r in result.rejections] == ["not_a_price"]
    assert "l4" not in {r.offer.instance_type for r in result.rows}
