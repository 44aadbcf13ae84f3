"""Cost lines: exact decimals, rounded line by line and summed afterwards, so that the lines always make the total."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

MICRO = Decimal("0.000001")
_NANO = Decimal("0.000000001")
STORAGE_KINDS = frozenset({"block_storage"})
EGRESS_KINDS = frozenset({"egress"})


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
    """All lines of a plan. compute is everything that is neither storage nor egress."""

    lines: tuple[CostLine, ...]

    @property
    def total(self) -> Decimal:
        """The sum of all lines."""
        return total_of(self.lines)

    @property
    def storage(self) -> Decimal:
        """Volumes for weights, checkpoints and data."""
        return total_of(line for line in self.lines if line.kind in STORAGE_KINDS)

    @property
    def egress(self) -> Decimal:
        """Traffic out of the provider's network."""
        return total_of(line for line in self.lines if line.kind in EGRESS_KINDS)

    @property
    def compute(self) -> Decimal:
        """Instances, starts, rounding, meters, interruptions, commitment and addresses."""
        return self.total - self.storage - self.egress


def exact(value: float | Decimal | str) -> Decimal:
    """A decimal of at most nine places: a price per hour that came through floating point, as it was meant."""
    return Decimal(str(value)).quantize(_NANO, ROUND_HALF_UP).normalize()


def line(kind: str, quantity: float | Decimal, unit: str, unit_price_usd: float | Decimal, source: str) -> CostLine:
    """One line; the quantity is rounded to six places before it is multiplied."""
    amount = Decimal(str(quantity)).quantize(MICRO, ROUND_HALF_UP)
    price = exact(unit_price_usd)
    return CostLine(kind, amount, unit, price, (amount * price).quantize(MICRO, ROUND_HALF_UP), source)


def total_of(lines: Iterable[CostLine]) -> Decimal:
    """The exact sum."""
    return sum((item.cost_usd for item in lines), Decimal(0))


def line_dict(item: CostLine) -> dict[str, Any]:
    """A line as the answer has it: plain numbers."""
    return {name: float(v) if isinstance(v, Decimal) else v for name, v in asdict(item).items()}
