"""Acme: the processor is a meter beside the GPU."""


def test_the_processor_is_no_offer(parse_page):
    result = parse_page()
    assert [s.kind for s in result.surcharges] == ["cpu"]
    assert {r.offer.gpu_count for r in result.rows} == {1}
