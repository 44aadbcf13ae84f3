"""Cost lines: exact decimals, rounded line by line and summed afterwards, so that the lines always make the total.

Thousands of offers are compared by floating-point charges; only the plans that are shown get their exact lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

MICRO = Decimal("0.000001")
_NANO = Decimal("0.000000001")
STORAGE_KINDS = frozenset({"block_storage"})
EGRESS_KINDS = frozenset({"egress"})


class Charge(NamedTuple):
    """`quantity` of `unit` at `unit_price_usd` each, not yet rounded."""

    kind: str
    quantity: float
    unit: str
    unit_price_usd: float
    source: str


@dataclass(frozen=True, slots=True)
class CostLine:
    """`quantity` of `unit` at `unit_price_usd` each; `cost_usd` is their product rounded to a millionth of a dollar."""

    kind: str
    quantity: Decimal
    unit: str
    unit_price_usd: Decimal
    cost_usd: Decimal
    source: str


@dataclass(frozen=True, slots=True)
class Cost:
    """All charges of a plan. `approximate` is their sum in floating point, for comparing; `exact` has the lines."""

    charges: tuple[Charge, ...]
    approximate: float

    def exact(self) -> ExactCost:
        """The lines and sums as they are shown."""
        return ExactCost(tuple(_line(charge) for charge in self.charges))


@dataclass(frozen=True, slots=True)
class ExactCost:
    """Exact lines. compute is everything that is neither storage nor egress."""

    lines: tuple[CostLine, ...]

    @property
    def total(self) -> Decimal:
        """The sum of all lines."""
        return _sum(self.lines)

    @property
    def storage(self) -> Decimal:
        """Volumes for weights, checkpoints and data."""
        return _sum(line for line in self.lines if line.kind in STORAGE_KINDS)

    @property
    def egress(self) -> Decimal:
        """Traffic out of the provider's network."""
        return _sum(line for line in self.lines if line.kind in EGRESS_KINDS)

    @property
    def compute(self) -> Decimal:
        """Instances, starts, rounding, meters, interruptions, commitment and addresses."""
        return self.total - self.storage - self.egress


def cost_of(charges: Iterable[Charge]) -> Cost:
    """The cost of some charges."""
    kept = tuple(charges)
    return Cost(kept, sum(charge.quantity * charge.unit_price_usd for charge in kept))


def _line(charge: Charge) -> CostLine:
    """The exact line: quantity to six places, price to nine (it came through floating point), product to six."""
    quantity = Decimal(str(charge.quantity)).quantize(MICRO, ROUND_HALF_UP)
    price = Decimal(str(charge.unit_price_usd)).quantize(_NANO, ROUND_HALF_UP).normalize()
    cost = (quantity * price).quantize(MICRO, ROUND_HALF_UP)
    return CostLine(charge.kind, quantity, charge.unit, price, cost, charge.source)


def _sum(lines: Iterable[CostLine]) -> Decimal:
    return sum((line.cost_usd for line in lines), Decimal(0))


def line_dict(item: CostLine) -> dict[str, Any]:
    """A line as the answer has it: plain numbers."""
    return {name: float(v) if isinstance(v, Decimal) else v for name, v in asdict(item).items()}
